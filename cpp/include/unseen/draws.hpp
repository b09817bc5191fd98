// Random numbers by counter, and rows drawn from their Gaussian conditionals.
#pragma once

#include "unseen/als_rows.hpp"

namespace unseen::UNSEEN_ISA {

// Philox 4x32 with ten rounds (Salmon et al., 2011): four words from a counter and a key.
UNSEEN_INLINE void philox(std::uint32_t (&counter)[4], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t(0xD2511F53u) * counter[0];
    const std::uint64_t b = std::uint64_t(0xCD9E8D57u) * counter[2];
    const std::uint32_t c1 = counter[1], c3 = counter[3];
    counter[0] = std::uint32_t(b >> 32) ^ c1 ^ key0;
    counter[1] = std::uint32_t(b);
    counter[2] = std::uint32_t(a >> 32) ^ c3 ^ key1;
    counter[3] = std::uint32_t(a);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// The same for several counters side by side, for vector units.
template <Size lanes>
UNSEEN_INLINE void philox_lanes(std::uint32_t (&c)[4][lanes], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (Size lane = 0; lane < lanes; ++lane) {
      const std::uint64_t a = std::uint64_t(0xD2511F53u) * c[0][lane];
      const std::uint64_t b = std::uint64_t(0xCD9E8D57u) * c[2][lane];
      c[0][lane] = std::uint32_t(b >> 32) ^ c[1][lane] ^ key0;
      c[1][lane] = std::uint32_t(b);
      c[2][lane] = std::uint32_t(a >> 32) ^ c[3][lane] ^ key1;
      c[3][lane] = std::uint32_t(a);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// Normal numbers of rows [first_row, first_row + n_rows): a row's numbers depend on the key and on the row
// alone. Four at a time by Box and Muller; the counter is (row, group of four and sweep, block).
template <class T>
bool normals(const DrawKey& key, Size first_row, Size n_rows, Size n_cols, T* out, int n_threads) {
  constexpr Size rows_a_task = 256;
  parallel_for((n_rows + rows_a_task - 1) / rows_a_task, n_threads, [&](Size task, int) {
    const Size stop = smaller((task + 1) * rows_a_task, n_rows);
    for (Size i = task * rows_a_task; i < stop; ++i) {
      const std::uint64_t row = std::uint64_t(first_row + i);
      for (Size at = 0; at < n_cols; at += 4) {
        // Rows take 40 bits, groups of four 24.
        std::uint32_t word[4] = {std::uint32_t(row), std::uint32_t(row >> 32) << 24 | std::uint32_t(at / 4),
                                 key.sweep, key.block};
        philox(word, key.seed_low, key.seed_high);
        for (Size pair = 0; pair < 4 && at + pair < n_cols; pair += 2) {
          const double u = (double(word[pair]) + 0.5) / 4294967296.0;
          const double turn = 6.283185307179586 * ((double(word[pair + 1]) + 0.5) / 4294967296.0);
          const double length = __builtin_sqrt(-2 * __builtin_log(u));
          T* to = out + i * n_cols + at + pair;
          to[0] = T(length * __builtin_cos(turn));
          if (at + pair + 1 < n_cols) to[1] = T(length * __builtin_sin(turn));
        }
      }
    }
  });
  return true;
}

// Gap to the next sign: 1 + floor(log(u) / log(1 - rate)), u from the upper 31 bits of a word.
UNSEEN_INLINE Size sign_gap(std::uint32_t word, double scale) {
  return 1 + Size(__builtin_log((double(word >> 1) + 0.5) / 2147483648.0) * scale);
}

// Gaps between signs are geometric; the sign is the lowest bit of a word. The counter is (group of four
// words, row, block). A logarithm costs more than all else, so the gaps of words that agree in their upper
// bits are looked up where they are the same.
template <class T, class I>
bool signs(const SignsProblem<T, I>& p, int n_threads) {
  constexpr Size rows_a_task = 16, lanes = 16, bits = 13;
  const double scale = 1 / __builtin_log1p(-p.rate);
  const T signed_size[2] = {-p.size, p.size};
  Buffer<std::int32_t> gaps(Size(1) << bits);
  if (!gaps) return false;
  for (std::uint32_t top = 0; top < 1u << bits; ++top) {
    const std::uint32_t first = top << (32 - bits), last = first | ((1u << (32 - bits)) - 1);
    const Size gap = sign_gap(first, scale);
    gaps[top] = gap == sign_gap(last, scale) && gap < (Size(1) << 31) ? std::int32_t(gap) : 0;
  }
  p.indptr[0] = 0;
  parallel_for((p.n_rows + rows_a_task - 1) / rows_a_task, n_threads, [&](Size task, int) {
    const Size stop = smaller((task + 1) * rows_a_task, p.n_rows);
    std::uint32_t counter[4][lanes], word[4 * lanes];
    for (Size i = task * rows_a_task; i < stop; ++i) {
      const std::uint64_t row = std::uint64_t(p.first_row + i);
      const Size skip = p.skip[i];
      I* indices = p.indices + i * p.capacity;
      T* values = p.values + i * p.capacity;
      Size count = 0, cell = -1;
      for (std::uint32_t group = 0; cell < p.length; group += lanes) {
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          counter[0][lane] = group + lane;
          counter[1][lane] = std::uint32_t(row);
          counter[2][lane] = std::uint32_t(row >> 32);
          counter[3][lane] = p.key.block;
        }
        philox_lanes<lanes>(counter, p.key.seed_low, p.key.seed_high);
        for (Size lane = 0; lane < lanes; ++lane) {
          for (Size t = 0; t < 4; ++t) word[4 * lane + t] = counter[t][lane];
        }
        for (Size t = 0; t < 4 * lanes; ++t) {
          const Size known = gaps[word[t] >> (32 - bits)];
          cell += known ? known : sign_gap(word[t], scale);
          if (cell >= p.length) break;
          if (cell == skip) continue;
          if (count < p.capacity) {
            indices[count] = I(cell);
            values[count] = signed_size[word[t] & 1];
          }
          ++count;
        }
      }
      p.indptr[i + 1] = I(count);
    }
  });
  *p.most = 0;
  for (Size i = 0; i < p.n_rows; ++i) *p.most = larger(*p.most, Size(p.indptr[i + 1]));
  if (*p.most > p.capacity) return true;
  Size total = 0;
  for (Size i = 0; i < p.n_rows; ++i) {
    const Size count = p.indptr[i + 1];
    for (Size t = 0; t < count; ++t) p.indices[total + t] = p.indices[i * p.capacity + t];
    for (Size t = 0; t < count; ++t) p.values[total + t] = p.values[i * p.capacity + t];
    total += count;
    p.indptr[i + 1] = I(total);
  }
  return true;
}

// The upper part of sums += (x x') o A and its last column += x o b, o entry by entry: with s_t the products
// of x and factors coordinate by coordinate, sum_t c_t s_t s_t' and sum_t l_t s_t of one row.
template <class T>
void add_sizes(const T* matrix, const T* pull, const T* x, Size rank, Size width, double* sums) {
  for (Size a = 0; a < rank; ++a) {
    const double own = double(x[a]);
    double* to = sums + a * (rank + 1);
    const T* from = matrix + a * width;
#pragma omp simd
    for (Size b = a; b < rank; ++b) to[b] += own * double(x[b]) * double(from[b]);
    to[rank] += own * double(pull[a]);
  }
}

// Row i ~ N(A^-1 b, A^-1), A = precision + sum_t c_t q_t q_t', b = offset_i + sum_t l_t q_t: with A = U'U it
// is A^-1 b + U^-1 e for the row's normal numbers e. A row whose matrix is not positive definite becomes NaN.
// With `sizes`, chunks are dealt out to a fixed number of groups, whose sums are added up in order.
template <class T, class I>
bool als_draw(const DrawProblem<T, I>& problem, int n_threads) {
  const Pattern<I>& cells = problem.cells;
  const Size rank = problem.rank, width = padded_width<T>(rank), n4 = round_up(rank, 4);
  if (rank == 0 || cells.n_rows == 0) {
    for (Size e = 0; problem.sizes && e < rank * (rank + 1); ++e) problem.sizes[e] = 0;
    return true;
  }
  constexpr Size rows_a_task = 64, most_groups = 64;
  const Size area = width * width, own = 2 * area + 2 * cells_a_block * width + 6 * width;
  const RowChunks chunks(cells.indptr, cells.n_rows, cells_a_chunk, rows_a_task);
  if (!chunks) return false;
  const Size n_groups = problem.sizes ? smaller(chunks.count(), most_groups) : chunks.count();
  const Size n_sums = problem.sizes ? rank * (rank + 1) : 0;
  Buffer<T> scratch(own * n_threads), table(cells.n_cols * width), base(area);
  Buffer<double> sums(larger<Size>(n_groups * n_sums, 1));
  if (!scratch || !table || !base || !sums) return false;
  sums.fill(0);
  copy_padded(problem.precision, rank, rank, width, base.data());
  for (Size l = rank; l < width; ++l) {
    for (Size r = 0; r < width; ++r) base[l * width + r] = r == l ? T(1) : T(0);
  }
  const Size n_copies = (cells.n_cols + rows_a_task - 1) / rows_a_task;
  parallel_for(n_copies, n_threads, [&](Size chunk, int) {
    const Size first = chunk * rows_a_task, n = smaller(rows_a_task, cells.n_cols - first);
    copy_padded(problem.other + first * rank, n, rank, width, table.data() + first * width);
  });
  parallel_for(n_groups, n_threads, [&](Size group, int thread) {
    T *matrix = scratch.data() + own * thread, *seen = matrix + area, *block = seen + area;
    T *rhs = block + 2 * cells_a_block * width, *inverse = rhs + width, *noise = inverse + width,
      *x = noise + width, *spare = x + width, *pull = spare + width;
    for (Size chunk = group; chunk < chunks.count(); chunk += n_groups) {
      const Size first = chunks.begin(chunk), last = chunks.end(chunk);
      Fetcher<T, I> fetcher{cells.indices, cells.indptr[first], cells.indptr[last], table.data(), width};
      for (Size i = first; i < last; ++i) {
        const Size start = cells.indptr[i];
        const RowSystem<T, I> row{
            cells.indices + start,
            Size(cells.indptr[i + 1]) - start,
            {problem.curvature.data + start * problem.curvature.step, problem.curvature.step},
            {problem.linear.data + start * problem.linear.step, problem.linear.step},
            table.data(),
            nullptr,
            nullptr,
            problem.shift,
            rank,
            width,
            start,
            &fetcher};
        for (Size e = 0; e < area; ++e) seen[e] = 0;
        for (Size l = 0; l < width; ++l) {
          pull[l] = 0;
          noise[l] = l < rank ? problem.noise[i * rank + l] : T(0);
        }
        add_normal_equations(row, seen, pull, block);
        for (Size e = 0; e < area; ++e) matrix[e] = base[e] + seen[e];
        const T* offset = problem.offset ? problem.offset + i * problem.offset_step : nullptr;
        for (Size l = 0; l < width; ++l) rhs[l] = pull[l] + (l < rank && offset ? offset[l] : T(0));
        const bool definite = cholesky(matrix, n4, width, inverse);
        if (definite && problem.means) {
          for (Size l = 0; l < width; ++l) spare[l] = rhs[l];
          cholesky_solve(matrix, n4, width, inverse, spare, x);
          for (Size l = 0; l < rank; ++l) problem.means[i * rank + l] = x[l];
        }
        if (definite) cholesky_solve(matrix, n4, width, inverse, rhs, x, noise);
        for (Size l = 0; l < rank; ++l) problem.out[i * rank + l] = definite ? x[l] : T(__builtin_nan(""));
        if (n_sums) add_sizes(seen, pull, problem.out + i * rank, rank, width, sums.data() + group * n_sums);
      }
    }
  });
  for (Size e = 0; e < n_sums; ++e) problem.sizes[e] = 0;
  for (Size group = 0; n_sums && group < n_groups; ++group) {
    for (Size e = 0; e < n_sums; ++e) problem.sizes[e] += sums[group * n_sums + e];
  }
  for (Size a = 0; n_sums && a < rank; ++a) {
    for (Size b = 0; b < a; ++b) problem.sizes[a * (rank + 1) + b] = problem.sizes[b * (rank + 1) + a];
  }
  return true;
}

}  // namespace unseen::UNSEEN_ISA
