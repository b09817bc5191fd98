// Normal numbers by counter, and rows drawn from their Gaussian conditionals.
//
//     A = precision + sum c q q',  b = offset + sum l q,  A = L L',  L y = b,  L' mean = y,  L' draw = y + noise
//
// A block owns a row, and A stands in its shared memory; a thread adds up a tile of it in registers. Long rows
// are cut into chunks whose sums are added in order.

#define DRAW_THREADS 256
#define TM ((WIDTH + 15) / 16)
#define PAD (16 * TM)
#define ACROSS (PAD + 1)
#define CELLS_STAGED 16
#define PART (PAD * PAD + PAD)

#define LOW_A 0xD2511F53u
#define LOW_B 0xCD9E8D57u

// Four numbers of a row from one counter: (row, group of four, sweep, block).
extern "C" __global__ void __launch_bounds__(128) normals(const Args a) {
    const i64 groups = (a.rank + 3) / 4, at = (i64)blockIdx.x * 128 + threadIdx.x;
    if (at >= a.n_rows * groups) return;
    const u64 row = a.first_row + (u64)(at / groups);
    const u32 group = (u32)(at % groups);
    u32 word[4] = {(u32)row, (u32)((row >> 32) << 24) | group, (u32)a.sweep, (u32)a.block};
    u32 key[2] = {(u32)a.seed, (u32)(a.seed >> 32)};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u32 high_a = __umulhi(LOW_A, word[0]), low_a = LOW_A * word[0];
        const u32 high_b = __umulhi(LOW_B, word[2]), low_b = LOW_B * word[2];
        word[0] = high_b ^ word[1] ^ key[0];
        word[1] = low_b;
        word[2] = high_a ^ word[3] ^ key[1];
        word[3] = low_a;
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    real *out = (real *)a.out + (at / groups) * a.rank + 4 * (i64)group;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
        const double first = ((double)word[2 * pair] + 0.5) / 4294967296.0;
        const double second = ((double)word[2 * pair + 1] + 0.5) / 4294967296.0;
        const double length = sqrt(-2.0 * log(first));
        double sine, cosine;
        sincospi(2.0 * second, &sine, &cosine);
        if (4 * (i64)group + 2 * pair < a.rank) out[2 * pair] = (real)(length * cosine);
        if (4 * (i64)group + 2 * pair + 1 < a.rank) out[2 * pair + 1] = (real)(length * sine);
    }
}

struct Place {
    real *tile, *c, *l, *matrix, *y, *mean, *draw;
};

__device__ __forceinline__ Place place_in(unsigned char *shared) {
    Place s;
    s.tile = (real *)shared;
    s.c = s.tile + CELLS_STAGED * PAD;
    s.l = s.c + CELLS_STAGED;
    s.matrix = s.l + CELLS_STAGED;
    s.y = s.matrix + PAD * ACROSS;
    s.mean = s.y + PAD;
    s.draw = s.mean + PAD;
    return s;
}

// Adds the cells [start, start + n) to a thread's tile of A and, for the first PAD threads, to b.
__device__ __forceinline__ void add_cells(const Args &a, const Place &s, i64 start, i64 n, real sum[TM][TM],
                                          real *pull) {
    const int across = threadIdx.x % 16, down = threadIdx.x / 16;
    const int *indices = (const int *)a.indices + start;
    for (i64 first = 0; first < n; first += CELLS_STAGED) {
        __syncthreads();
        for (int e = threadIdx.x; e < CELLS_STAGED * PAD; e += DRAW_THREADS) {
            const int cell = e / PAD, k = e % PAD;
            const bool inside = first + cell < n && k < WIDTH;
            s.tile[e] = inside ? ((const real *)a.table)[(i64)indices[first + cell] * WIDTH + k] : (real)0;
        }
        if (threadIdx.x < CELLS_STAGED) {
            const i64 cell = first + threadIdx.x;
            real c = 0, l = 0;
            if (cell < n) {
                c = a.per_curvature ? ((const real *)a.curvature)[start + cell] : (real)a.curvature_all;
                l = a.per_linear ? ((const real *)a.linear)[start + cell] : (real)a.linear_all;
                if (a.shift) l -= c * ((const real *)a.shift)[indices[cell]];
            }
            s.c[threadIdx.x] = (real)a.scale * c;
            s.l[threadIdx.x] = (real)a.scale * l;
        }
        __syncthreads();
#pragma unroll 4
        for (int t = 0; t < CELLS_STAGED; ++t) {
            real left[TM], right[TM];
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                left[i] = s.c[t] * s.tile[t * PAD + down + 16 * i];
                right[i] = s.tile[t * PAD + across + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TM; ++j) sum[i][j] += left[i] * right[j];
        }
        if (threadIdx.x < PAD)
            for (int t = 0; t < CELLS_STAGED; ++t) *pull += s.l[t] * s.tile[t * PAD + threadIdx.x];
    }
}

extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_chunk(const Args a) {
    extern __shared__ __align__(16) unsigned char shared[];
    const Place s = place_in(shared);
    const i64 *chunk = (const i64 *)a.chunks + 3 * (i64)blockIdx.x;
    real sum[TM][TM] = {}, pull = 0;
    add_cells(a, s, chunk[1], chunk[2] - chunk[1], sum, &pull);
    const int across = threadIdx.x % 16, down = threadIdx.x / 16;
    real *part = (real *)a.partial + (i64)blockIdx.x * PART;
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TM; ++j) part[(down + 16 * i) * PAD + across + 16 * j] = sum[i][j];
    if (threadIdx.x < PAD) part[PAD * PAD + threadIdx.x] = pull;
}

extern "C" __global__ void __launch_bounds__(DRAW_THREADS) draw_row(const Args a, const int *rows, int is_long) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ int bad;
    const Place s = place_in(shared);
    const i64 row = rows[blockIdx.x];
    const int across = threadIdx.x % 16, down = threadIdx.x / 16, k = (int)a.rank;
    real sum[TM][TM] = {}, pull = 0;
    if (is_long) {
        const i64 *ends = (const i64 *)a.chunk_ptr + blockIdx.x;
        for (i64 c = ends[0]; c < ends[1]; ++c) {
            const real *part = (const real *)a.partial + c * PART;
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TM; ++j) sum[i][j] += part[(down + 16 * i) * PAD + across + 16 * j];
            if (threadIdx.x < PAD) pull += part[PAD * PAD + threadIdx.x];
        }
    } else {
        const i64 *ends = (const i64 *)a.indptr + row;
        add_cells(a, s, ends[0], ends[1] - ends[0], sum, &pull);
    }
    if (threadIdx.x == 0) bad = 0;
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TM; ++j) {
            const int p = down + 16 * i, q = across + 16 * j;
            const real prior = p < k && q < k ? ((const real *)a.precision)[p * k + q] : (real)0;
            s.matrix[p * ACROSS + q] = sum[i][j] + prior;
        }
    if (threadIdx.x < PAD) {
        real b = pull;
        if (a.offset && threadIdx.x < k) b += ((const real *)a.offset)[row * a.offset_stride + threadIdx.x];
        s.y[threadIdx.x] = b;
    }
    __syncthreads();
    // Cholesky in place, column by column; the right side is taken along as one more row.
    for (int j = 0; j < k; ++j) {
        const real pivot = s.matrix[j * ACROSS + j];
        const real root = pivot > 0 ? sqrt(pivot) : (real)1;
        __syncthreads(); // all have read the pivot
        if (threadIdx.x == 0 && !(pivot > 0)) bad = 1;
        for (int i = j + (int)threadIdx.x; i <= k; i += DRAW_THREADS)
            if (i < k)
                s.matrix[i * ACROSS + j] /= root;
            else
                s.y[j] /= root;
        __syncthreads();
        for (int i = j + 1 + down; i <= k; i += DRAW_THREADS / 16) {
            const real factor = i < k ? s.matrix[i * ACROSS + j] : s.y[j];
            const int end = i < k ? i : k - 1;
            for (int c = j + 1 + across; c <= end; c += 16) {
                const real change = factor * s.matrix[c * ACROSS + j];
                if (i < k)
                    s.matrix[i * ACROSS + c] -= change;
                else
                    s.y[c] -= change;
            }
        }
        __syncthreads();
    }
    // L' x = y, for the mean and for the draw, a warp each.
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    if (warp < 2) {
        real *x = warp ? s.draw : s.mean;
        for (int i = lane; i < k; i += 32) x[i] = s.y[i] + (warp ? ((const real *)a.noise)[row * k + i] : (real)0);
        __syncwarp();
        for (int j = k - 1; j >= 0; --j) {
            const real found = x[j] / s.matrix[j * ACROSS + j];
            __syncwarp();
            for (int i = lane; i <= j; i += 32) x[i] = i == j ? found : x[i] - s.matrix[j * ACROSS + i] * found;
            __syncwarp();
        }
        real *to = (real *)(warp ? a.out : a.means);
        if (to)
            for (int i = lane; i < k; i += 32) to[row * k + i] = bad ? (real)__int_as_float(0x7fffffff) : x[i];
    }
}
