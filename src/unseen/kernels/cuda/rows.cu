// Rows of alternating least squares by conjugate gradients, in a frame where what rows share is diagonal.
//
//     (base + sum c q q') x = offset + sum l q,    base = scale diag + ridge, or ones without a diagonal
//
// Short rows: a block owns a row; its factors are copied to shared memory once, and all passes read them
// there. While one block computes, the copies of others are on their way. Long rows: a block owns a chunk of
// a row, partial sums are added in order by a second kernel.

#ifndef CELLS
#define CELLS 0 // whether curvature, linear or a shift differ from cell to cell
#endif
#ifndef DIAGONAL
#define DIAGONAL 0
#endif

struct Weights {
    real curvature, linear;
};

__device__ __forceinline__ Weights weights_of(const Args &a, i64 cell, i64 column, double *constant) {
    double c = a.per_curvature ? (double)((const real *)a.curvature)[cell] : a.curvature_all;
    double l = a.per_linear ? (double)((const real *)a.linear)[cell] : a.linear_all;
    if (a.shift) {
        const double h = (double)((const real *)a.shift)[column];
        *constant += (0.5 * c * h - l) * h;
        l -= c * h;
    }
    return {(real)(c / (a.unit * a.unit)), (real)(l / a.unit)};
}

__device__ __forceinline__ void base_of(const Args &a, i64 row, int own, real *base, real *inverse) {
    const real scale = a.row_scale ? ((const real *)a.row_scale)[row] : (real)1;
    const real ridge = a.row_ridge ? ((const real *)a.row_ridge)[row] : (real)0;
    const real *diagonal = (const real *)a.diagonal;
    read_own(diagonal, own, base);
    const real floor = (real)1e-6 * (scale * diagonal[WIDTH] + ridge); // the largest one stands at the end
#pragma unroll
    for (int e = 0; e < OWN; ++e) {
        base[e] = scale * base[e] + ridge;
        inverse[e] = floor > 0 ? (real)1 / (base[e] > floor ? base[e] : floor) : (real)1;
    }
}

__device__ __forceinline__ void failed(const Args &a, i64 row) {
    const int place = atomicAdd((int *)a.n_failed, 1);
    ((int *)a.failed)[place] = (int)row;
}

struct Row {
    const entry *tile;
    const real *curvature, *linear;
    real *partial;
    int n, warps, warp, own, group, turn;

    template <bool FIRST>
    __device__ __forceinline__ void pass(const Args &a, const real *vector, real *sum, double *value) {
#pragma unroll
        for (int e = 0; e < OWN; ++e) sum[e] = 0;
        const real c_all = (real)(a.curvature_all / (a.unit * a.unit)), l_all = (real)(a.linear_all / a.unit);
        // The same number of turns for the whole warp: its shuffles need all lanes.
#pragma unroll 2
        for (int first = warp * GROUPS; first < n; first += warps * GROUPS) {
            const bool inside = first + group < n;
            const int cell = inside ? first + group : n - 1;
            real q[OWN];
            read_row(tile + (i64)cell * WIDTH, own, q);
            const real score = over_group(dot(q, vector));
            const real c = CELLS ? curvature[cell] : c_all;
            real weight = c * score;
            if (FIRST) {
                const real l = CELLS ? linear[cell] : l_all;
                if (own == 0 && inside) *value += (0.5 * (double)weight - (double)l) * (double)score;
                weight = l - weight;
            }
            if (!inside) weight = 0;
#pragma unroll
            for (int e = 0; e < OWN; ++e) sum[e] += weight * q[e];
        }
        add_groups(sum);
        if (warps > 1) {
            real *place = partial + turn * warps * WIDTH;
            turn ^= 1; // two places in turn: one barrier a pass
            if (group == 0) write_own(place + warp * WIDTH, own, sum);
            __syncthreads();
            read_own(place, own, sum);
#pragma unroll 1
            for (int w = 1; w < warps; ++w) {
                real other[OWN];
                read_own(place + w * WIDTH, own, other);
#pragma unroll
                for (int e = 0; e < OWN; ++e) sum[e] += other[e];
            }
        }
    }
};

// Threads of the largest block: with more, registers would not suffice.
#define MOST_THREADS (32 * MOST_WARPS)

extern "C" __global__ void __launch_bounds__(MOST_THREADS) staged(const Args a, const int *rows, int most) {
    const int warps = blockDim.x / 32, threads = blockDim.x;
    extern __shared__ __align__(16) unsigned char shared[];
    entry *tile = (entry *)shared;
    real *partial = (real *)(tile + (i64)most * WIDTH);
    double *sums = (double *)(partial + (warps > 1 ? 2 * warps * WIDTH : 0));
    real *c_cells = (real *)(sums + warps), *l_cells = c_cells + (CELLS ? most : 0);
    int *ids = (int *)(l_cells + (CELLS ? most : 0));

    const i64 row = rows[blockIdx.x];
    const i64 start = ((const i64 *)a.indptr)[row];
    const int n = (int)(((const i64 *)a.indptr)[row + 1] - start);
    const int lane = threadIdx.x & 31, own = lane % LANES, warp = threadIdx.x / 32;
    const int *indices = (const int *)a.indices + start;
    const entry *table = (const entry *)a.table;

    for (int t = threadIdx.x; t < n; t += threads) ids[t] = indices[t];
    meet(warps);
    for (int e = threadIdx.x; e < n * PIECES; e += threads) {
        const int cell = e / PIECES, piece = e - cell * PIECES;
        copy16(tile + (i64)cell * WIDTH + piece * ENTRIES, table + (i64)ids[cell] * WIDTH + piece * ENTRIES);
    }
    double value = 0;
    if (CELLS)
        for (int t = threadIdx.x; t < n; t += threads) {
            const Weights found = weights_of(a, start + t, ids[t], &value);
            c_cells[t] = found.curvature;
            l_cells[t] = found.linear;
        }
    real x[OWN], r[OWN], p[OWN], y[OWN];
    real *out = (real *)a.x + row * WIDTH;
    read_own(out, own, x);
    copies_done();
    meet(warps);

    Row cells = {tile, c_cells, l_cells, partial, n, warps, warp, own, lane / LANES, 0};
    cells.pass<true>(a, x, y, &value);
    value = over_warp(value);
    if (warps > 1) {
        if (lane == 0) sums[warp] = value;
        __syncthreads();
        value = 0;
        for (int w = 0; w < warps; ++w) value += sums[w];
    }
    if (a.offset) {
        read_own((const real *)a.offset + row * a.offset_stride, own, p);
        value -= (double)over_group(dot(p, x));
#pragma unroll
        for (int e = 0; e < OWN; ++e) y[e] += p[e];
    }
#if DIAGONAL
    real base[OWN], inverse[OWN];
    base_of(a, row, own, base, inverse);
#define BASE(e) base[e]
#define INVERSE(e) inverse[e]
#else
#define BASE(e) 1
#define INVERSE(e) 1
#endif
    real size = 0, square = 0;
#pragma unroll
    for (int e = 0; e < OWN; ++e) {
        square += x[e] * (BASE(e) * x[e]);
        r[e] = y[e] - BASE(e) * x[e];
        p[e] = INVERSE(e) * r[e];
        size += r[e] * p[e];
    }
    size = over_group(size);
    value += 0.5 * (double)over_group(square);

    bool bad = !(size < (real)1e30); // NaN too
    bool done = !(size > TINY);
    for (int step = 0; step < a.steps && !done && !bad; ++step) {
        cells.pass<false>(a, p, y, nullptr);
#pragma unroll
        for (int e = 0; e < OWN; ++e) y[e] += BASE(e) * p[e];
        const real along = over_group(dot(p, y));
        if (!(along > 0)) {
            bad = true;
            break;
        }
        const real length = size / along;
        value -= 0.5 * (double)length * (double)size;
        const real before = size;
        size = 0;
#pragma unroll
        for (int e = 0; e < OWN; ++e) {
            x[e] += length * p[e];
            r[e] -= length * y[e];
            size += r[e] * (INVERSE(e) * r[e]);
        }
        size = over_group(size);
        done = !(size > TINY);
        if (a.tolerance > 0) { // the exact solution is asked for: go on until a step changes nothing
            const real moved = length * length * over_group(dot(p, p)), all = over_group(dot(x, x));
            done = done || moved <= (real)(a.tolerance * a.tolerance) * all;
            bad = !done && step + 1 == a.steps && moved > (real)1e-8 * all;
        }
        const real ratio = size / before;
#pragma unroll
        for (int e = 0; e < OWN; ++e) p[e] = INVERSE(e) * r[e] + ratio * p[e];
    }
    if (warp == 0 && lane < LANES) write_own(out, own, x);
    if (threadIdx.x == 0) {
        if (a.values) ((double *)a.values)[row] = value;
        if (bad) failed(a, row);
    }
}

// Very short rows: a group of lanes owns a row, so a warp solves several. The groups take the same turns.

#define SMALL_WARPS 2

template <bool FIRST>
__device__ __forceinline__ void small_pass(const Args &a, const entry *tile, const real *c_cells, const real *l_cells,
                                           int n, int turns, int own, const real *vector, real *sum, double *value) {
#pragma unroll
    for (int e = 0; e < OWN; ++e) sum[e] = 0;
    const real c_all = (real)(a.curvature_all / (a.unit * a.unit)), l_all = (real)(a.linear_all / a.unit);
#pragma unroll 2
    for (int cell = 0; cell < turns; ++cell) {
        const bool inside = cell < n;
        real q[OWN];
        if (inside)
            read_row(tile + (i64)cell * WIDTH, own, q);
        else
#pragma unroll
            for (int e = 0; e < OWN; ++e) q[e] = 0;
        const real score = over_group(dot(q, vector));
        const real c = CELLS && inside ? c_cells[cell] : c_all;
        real weight = c * score;
        if (FIRST) {
            const real l = CELLS && inside ? l_cells[cell] : l_all;
            if (inside) *value += (0.5 * (double)weight - (double)l) * (double)score;
            weight = l - weight;
        }
#pragma unroll
        for (int e = 0; e < OWN; ++e) sum[e] += weight * q[e];
    }
}

extern "C" __global__ void __launch_bounds__(SMALL_WARPS * 32) small(const Args a, const int *rows, int n_rows, int most) {
    extern __shared__ __align__(16) unsigned char shared[];
    const int lane = threadIdx.x & 31, own = lane % LANES, slot = threadIdx.x / LANES;
    const int place = blockIdx.x * (SMALL_WARPS * GROUPS) + slot;
    const i64 row = rows[place < n_rows ? place : n_rows - 1];
    const i64 start = ((const i64 *)a.indptr)[row];
    const int n = place < n_rows ? (int)(((const i64 *)a.indptr)[row + 1] - start) : 0;
    entry *tile = (entry *)shared + (i64)slot * most * WIDTH;
    real *c_cells = (real *)((entry *)shared + (i64)SMALL_WARPS * GROUPS * most * WIDTH) + 2 * slot * most;
    real *l_cells = c_cells + most;
    const int *indices = (const int *)a.indices + start;
    for (int e = own; e < n * PIECES; e += LANES) {
        const int cell = e / PIECES, piece = e - cell * PIECES;
        copy16(tile + (i64)cell * WIDTH + piece * ENTRIES,
               (const entry *)a.table + (i64)indices[cell] * WIDTH + piece * ENTRIES);
    }
    double constant = 0;
    if (CELLS)
        for (int t = own; t < n; t += LANES) {
            const Weights found = weights_of(a, start + t, indices[t], &constant);
            c_cells[t] = found.curvature;
            l_cells[t] = found.linear;
        }
    int turns = n;
#pragma unroll
    for (int step = 16; step >= LANES; step /= 2) turns = max(turns, __shfl_xor_sync(ALL_LANES, turns, step));
    real x[OWN], r[OWN], p[OWN], y[OWN];
    real *out = (real *)a.x + row * WIDTH;
    read_own(out, own, x);
    copies_done();
    __syncwarp();
    double value = 0;
    small_pass<true>(a, tile, c_cells, l_cells, n, turns, own, x, y, &value);
    if (CELLS) {
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) constant += __shfl_xor_sync(ALL_LANES, constant, step);
        value += constant;
    }
    if (a.offset) {
        read_own((const real *)a.offset + row * a.offset_stride, own, p);
        value -= (double)over_group(dot(p, x));
#pragma unroll
        for (int e = 0; e < OWN; ++e) y[e] += p[e];
    }
#if DIAGONAL
    real base[OWN], inverse[OWN];
    base_of(a, row, own, base, inverse);
#endif
    real size = 0, square = 0;
#pragma unroll
    for (int e = 0; e < OWN; ++e) {
        square += x[e] * (BASE(e) * x[e]);
        r[e] = y[e] - BASE(e) * x[e];
        p[e] = INVERSE(e) * r[e];
        size += r[e] * p[e];
    }
    size = over_group(size);
    value += 0.5 * (double)over_group(square);
    bool bad = !(size < (real)1e30), done = !(size > TINY);
    for (int step = 0; step < a.steps; ++step) {
        if (__all_sync(ALL_LANES, done || bad)) break;
        small_pass<false>(a, tile, c_cells, l_cells, n, turns, own, p, y, nullptr);
#pragma unroll
        for (int e = 0; e < OWN; ++e) y[e] += BASE(e) * p[e];
        const real along = over_group(dot(p, y));
        const bool active = !done && !bad && along > 0;
        bad = bad || (!done && !(along > 0));
        const real length = active ? size / along : (real)0;
        real next = 0;
#pragma unroll
        for (int e = 0; e < OWN; ++e) {
            x[e] += length * p[e];
            r[e] -= length * y[e];
            next += r[e] * (INVERSE(e) * r[e]);
        }
        next = over_group(next);
        real moved = 0, all = 0;
        if (a.tolerance > 0) {
            moved = length * length * over_group(dot(p, p));
            all = over_group(dot(x, x));
        }
        if (active) {
            value -= 0.5 * (double)length * (double)size;
            const real ratio = next / size;
            size = next;
            done = !(size > TINY);
            if (a.tolerance > 0) {
                done = done || moved <= (real)(a.tolerance * a.tolerance) * all;
                bad = !done && step + 1 == a.steps && moved > (real)1e-8 * all;
            }
#pragma unroll
            for (int e = 0; e < OWN; ++e) p[e] = INVERSE(e) * r[e] + ratio * p[e];
        }
    }
    if (place >= n_rows) return;
    write_own(out, own, x);
    if (own == 0) {
        if (a.values) ((double *)a.values)[row] = value;
        if (bad) failed(a, row);
    }
}

// Long rows. chunks: (place among the long rows, first cell, end). State of a row: size, value, done, unused.

#define CHUNK_WARPS 8

template <bool FIRST> __device__ __forceinline__ void chunk_pass(const Args &a) {
    __shared__ __align__(16) real partial[CHUNK_WARPS * WIDTH];
    __shared__ double sums[CHUNK_WARPS];
    const i64 *chunk = (const i64 *)a.chunks + 3 * (i64)blockIdx.x;
    const i64 place = chunk[0], start = chunk[1];
    const int n = (int)(chunk[2] - start);
    const double *state = (const double *)a.state + 4 * place;
    if (!FIRST && state[2] != 0) return;
    const int lane = threadIdx.x & 31, own = lane % LANES, group = lane / LANES, warp = threadIdx.x / 32;
    const i64 row = ((const int *)a.long_rows)[place];
    real vector[OWN], sum[OWN];
    read_own(FIRST ? (const real *)a.x + row * WIDTH : (const real *)a.p + place * WIDTH, own, vector);
#pragma unroll
    for (int e = 0; e < OWN; ++e) sum[e] = 0;
    const int *indices = (const int *)a.indices + start;
    const entry *table = (const entry *)a.table;
    const Weights all = {(real)(a.curvature_all / (a.unit * a.unit)), (real)(a.linear_all / a.unit)};
    double value = 0;
#pragma unroll 4
    for (int first = warp * GROUPS; first < n; first += CHUNK_WARPS * GROUPS) {
        const bool inside = first + group < n;
        const int cell = inside ? first + group : n - 1;
        const i64 column = indices[cell];
        real q[OWN];
        read_row(table + column * WIDTH, own, q);
        const real score = over_group(dot(q, vector));
        Weights w = all;
        double constant = 0;
        if (CELLS) w = weights_of(a, start + cell, column, &constant);
        real weight = w.curvature * score;
        if (FIRST) {
            if (own == 0 && inside) value += constant + (0.5 * (double)weight - (double)w.linear) * (double)score;
            weight = w.linear - weight;
        }
        if (!inside) weight = 0;
#pragma unroll
        for (int e = 0; e < OWN; ++e) sum[e] += weight * q[e];
    }
    add_groups(sum);
    if (group == 0) write_own(partial + warp * WIDTH, own, sum);
    value = over_warp(value);
    if (lane == 0) sums[warp] = value;
    __syncthreads();
    for (int k = threadIdx.x; k < WIDTH; k += CHUNK_WARPS * 32) {
        real total = 0;
        for (int w = 0; w < CHUNK_WARPS; ++w) total += partial[w * WIDTH + k];
        ((real *)a.partial)[(i64)blockIdx.x * WIDTH + k] = total;
    }
    if (FIRST && threadIdx.x == 0) {
        value = 0;
        for (int w = 0; w < CHUNK_WARPS; ++w) value += sums[w];
        ((double *)a.partial_values)[blockIdx.x] = value;
    }
}

extern "C" __global__ void __launch_bounds__(256) chunk_first(const Args a) { chunk_pass<true>(a); }
extern "C" __global__ void __launch_bounds__(256) chunk_next(const Args a) { chunk_pass<false>(a); }

#define STEP_THREADS 256
#define SLICES (WIDTH < STEP_THREADS ? STEP_THREADS / WIDTH : 1)

__device__ __forceinline__ real over_block(real value, real *places) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) places[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int w = 0; w < STEP_THREADS / 32; ++w) value += places[w];
    return value;
}

template <bool FIRST> __device__ __forceinline__ void long_step(const Args &a, int step) {
    __shared__ real places[STEP_THREADS / 32];
    const i64 place = blockIdx.x, row = ((const int *)a.long_rows)[place];
    double *state = (double *)a.state + 4 * place;
    if (!FIRST && state[2] != 0) return;
    const i64 first = ((const i64 *)a.chunk_ptr)[place], end = ((const i64 *)a.chunk_ptr)[place + 1];
    real *x = (real *)a.x + row * WIDTH, *r = (real *)a.r + place * WIDTH, *p = (real *)a.p + place * WIDTH;
    const real *offset = a.offset ? (const real *)a.offset + row * a.offset_stride : nullptr;
    const real *diagonal = (const real *)a.diagonal, *partial = (const real *)a.partial;
    real scale = 1, ridge = 0, floor = 0;
    if (DIAGONAL) {
        if (a.row_scale) scale = ((const real *)a.row_scale)[row];
        if (a.row_ridge) ridge = ((const real *)a.row_ridge)[row];
        floor = (real)1e-6 * (scale * diagonal[WIDTH] + ridge);
    }
    real one = 0, two = 0, three = 0;
    // Every SLICES-th chunk is added by one thread, then the slices in order.
    __shared__ real slices[SLICES * WIDTH];
    for (int e = threadIdx.x; e < SLICES * WIDTH; e += STEP_THREADS) {
        real y = 0;
#pragma unroll 4
        for (i64 c = first + e / WIDTH; c < end; c += SLICES) y += partial[c * WIDTH + e % WIDTH];
        slices[e] = y;
    }
    __syncthreads();
    // A thread owns the same places in every loop, so no barrier stands between them.
    for (int k = threadIdx.x; k < WIDTH; k += STEP_THREADS) {
        real y = slices[k];
        for (int s = 1; s < SLICES; ++s) y += slices[s * WIDTH + k];
        const real base = DIAGONAL ? scale * diagonal[k] + ridge : (real)1;
        const real inverse = !DIAGONAL || !(floor > 0) ? (real)1 : (real)1 / (base > floor ? base : floor);
        if (FIRST) {
            const real o = offset ? offset[k] : (real)0, rest = y + o - base * x[k];
            r[k] = rest;
            p[k] = inverse * rest;
            one += rest * (inverse * rest);
            two += (real)0.5 * x[k] * (base * x[k]) - o * x[k];
        } else {
            const real image = base * p[k] + y;
            ((real *)a.image)[place * WIDTH + k] = image;
            one += p[k] * image;
        }
    }
    one = over_block(one, places);
    double value;
    bool bad = false, done = false;
    real size = one;
    if (FIRST) {
        value = (double)over_block(two, places);
        for (i64 c = first; c < end; ++c) value += ((const double *)a.partial_values)[c];
        bad = !(size < (real)1e30);
        done = !(size > TINY);
    } else {
        const real before = (real)state[0];
        value = state[1];
        if (!(one > 0)) {
            bad = true;
            size = before;
        } else {
            const real length = before / one;
            value -= 0.5 * (double)length * (double)before;
            size = two = three = 0;
            for (int k = threadIdx.x; k < WIDTH; k += STEP_THREADS) {
                const real base = DIAGONAL ? scale * diagonal[k] + ridge : (real)1;
                const real inverse = !DIAGONAL || !(floor > 0) ? (real)1 : (real)1 / (base > floor ? base : floor);
                x[k] += length * p[k];
                r[k] -= length * ((real *)a.image)[place * WIDTH + k];
                size += r[k] * (inverse * r[k]);
                two += p[k] * p[k];
                three += x[k] * x[k];
            }
            size = over_block(size, places);
            const real ratio = size / before;
            done = !(size > TINY);
            if (a.tolerance > 0) {
                two = over_block(two, places) * length * length;
                three = over_block(three, places);
                done = done || two <= (real)(a.tolerance * a.tolerance) * three;
                bad = !done && step + 1 == a.steps && two > (real)1e-8 * three;
            }
            for (int k = threadIdx.x; k < WIDTH; k += STEP_THREADS) {
                const real base = DIAGONAL ? scale * diagonal[k] + ridge : (real)1;
                const real inverse = !DIAGONAL || !(floor > 0) ? (real)1 : (real)1 / (base > floor ? base : floor);
                p[k] = inverse * r[k] + ratio * p[k];
            }
        }
    }
    __syncthreads(); // all have read the state
    if (threadIdx.x == 0) {
        state[0] = (double)size;
        state[1] = value;
        state[2] = done || bad ? 1.0 : 0.0;
        if (a.values) ((double *)a.values)[row] = value;
        if (bad) failed(a, row);
    }
}

extern "C" __global__ void __launch_bounds__(STEP_THREADS) long_first(const Args a, int step) {
    long_step<true>(a, step);
}
extern "C" __global__ void __launch_bounds__(STEP_THREADS) long_next(const Args a, int step) {
    long_step<false>(a, step);
}
