// The best columns of every row of left @ right', which is never stored.
//
// filter: scores from halves on the tensor cores; a column above the row's bound goes to the row's buffer, and
//         a full buffer is cut to its KEEP best, the last of which is the new bound.
// exact:  the same with scores added in the type of the factors, in the order of the columns.
// refine: scores of what was kept as `exact` makes them, sorted. A row is sure if its last wanted score lies
//         above the bound by more than halves can be wrong.
//
// A block sees columns by increasing place, so of equal scores the smaller place is kept.

#define COLS 64
#define THREADS 256
#define LIMIT (KEEP + 16)
#define ROOM (LIMIT + COLS)
#define WARPS (THREADS / 32)

#if WIDE
struct Key {
    u64 score;
    u64 place;
};
__device__ __forceinline__ bool above(const Key &a, const Key &b) {
    return a.score > b.score || (a.score == b.score && a.place > b.place);
}
__device__ __forceinline__ u64 ordered(double s) {
    const i64 bits = __double_as_longlong(s + 0.0); // -0 is 0
    return bits < 0 ? ~(u64)bits : (u64)bits | 0x8000000000000000ull;
}
__device__ __forceinline__ Key make_key(real s, u32 place) { return {ordered(s), (u64)(0xffffffffu - place)}; }
__device__ __forceinline__ u64 rank_of(const Key &key) { return key.score; }
__device__ __forceinline__ u32 place_of(const Key &key) { return 0xffffffffu - (u32)key.place; }
__device__ __forceinline__ bool empty(const Key &key) { return key.score == 0; }
typedef u64 Rank;
__device__ __forceinline__ real score_at(Rank rank) {
    const u64 bits = rank & 0x8000000000000000ull ? rank & 0x7fffffffffffffffull : ~rank;
    return __longlong_as_double((i64)bits);
}
#else
typedef u64 Key;
typedef u32 Rank;
__device__ __forceinline__ bool above(Key a, Key b) { return a > b; }
__device__ __forceinline__ u32 ordered(float s) {
    const u32 bits = __float_as_uint(s + 0.0f); // -0 is 0
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ Key make_key(real s, u32 place) {
    return (u64)ordered(s) << 32 | (0xffffffffu - place);
}
__device__ __forceinline__ Rank rank_of(Key key) { return (u32)(key >> 32); }
__device__ __forceinline__ u32 place_of(Key key) { return 0xffffffffu - (u32)key; }
__device__ __forceinline__ bool empty(Key key) { return key == 0; }
__device__ __forceinline__ real score_at(Rank rank) {
    return __uint_as_float(rank & 0x80000000u ? rank & 0x7fffffffu : ~rank);
}
#endif

#define NO_SCORE (-__longlong_as_double(0x7ff0000000000000ll)) // -inf

__device__ __forceinline__ bool excluded(const Args &a, i64 row, u32 place) {
    if (!a.exclude_ptr) return false;
    const i64 id = a.col_ids ? ((const i64 *)a.col_ids)[place] : (i64)place;
    i64 low = ((const i64 *)a.exclude_ptr)[row], high = ((const i64 *)a.exclude_ptr)[row + 1];
    const i64 end = high;
    const i64 *ids = (const i64 *)a.exclude_ids;
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && ids[low] == id;
}

// Cut a row's buffer to its best, by one warp. Says how many are left; what is gone ranks at most `bound`.
__device__ __forceinline__ int cut(const Args &a, i64 row, Key *keys, int n, Rank *bound) {
    const int lane = threadIdx.x & 31;
    Key mine[(ROOM + 31) / 32];
    int rank[(ROOM + 31) / 32];
    const Key none = {};
#pragma unroll
    for (int s = 0; s < (ROOM + 31) / 32; ++s) {
        const int at = s * 32 + lane;
        mine[s] = at < n ? keys[at] : none;
        if (at < n && excluded(a, row, place_of(mine[s]))) {
            mine[s] = none;
            keys[at] = none;
        }
        rank[s] = 0;
    }
    __syncwarp();
    // The largest number that KEEP scores reach, bit by bit; it ends where it parts exactly KEEP from the rest.
    Rank least = 0;
    int reaching = n;
#pragma unroll 1
    for (int bit = 8 * (int)sizeof(Rank) - 1; bit >= 0; --bit) {
        const Rank tried = least | ((Rank)1 << bit);
        int count = 0;
#pragma unroll
        for (int s = 0; s < (ROOM + 31) / 32; ++s)
            count += __popc(__ballot_sync(ALL_LANES, rank_of(mine[s]) >= tried));
        if (count >= KEEP) {
            least = tried;
            reaching = count;
        }
        if (count == KEEP) break;
    }
    *bound = least;
    if (least == 0 || reaching == KEEP) { // nothing ties with the last one: they need no order
        int left = 0;
        __syncwarp();
#pragma unroll
        for (int s = 0; s < (ROOM + 31) / 32; ++s) {
            const bool kept = !empty(mine[s]) && rank_of(mine[s]) >= least;
            const u32 those = __ballot_sync(ALL_LANES, kept);
            if (kept) keys[left + __popc(those & ((1u << lane) - 1))] = mine[s];
            left += __popc(those);
        }
        __syncwarp();
        return left;
    }
    for (int j = 0; j < n; ++j) {
        const Key other = keys[j];
#pragma unroll
        for (int s = 0; s < (ROOM + 31) / 32; ++s) rank[s] += above(other, mine[s]);
    }
    __syncwarp();
    int left = 0;
#pragma unroll
    for (int s = 0; s < (ROOM + 31) / 32; ++s) {
        const bool kept = !empty(mine[s]) && rank[s] < KEEP;
        if (kept) keys[rank[s]] = mine[s];
        left += __popc(__ballot_sync(ALL_LANES, kept));
    }
    __syncwarp();
    return left;
}

struct Buffers {
    Key *keys;
    int *count;
    real *bound;  // of the filter
    Rank *rank;   // of the exact pass
};

__device__ __forceinline__ Buffers buffers(unsigned char *shared) {
    Buffers b;
    b.keys = (Key *)shared;
    b.count = (int *)(b.keys + ROWS * ROOM);
    b.bound = (real *)(b.count + ROWS);
    b.rank = (Rank *)(b.bound + ROWS);
    if (threadIdx.x < ROWS) {
        b.count[threadIdx.x] = 0;
        b.bound[threadIdx.x] = (real)NO_SCORE;
        b.rank[threadIdx.x] = 0;
    }
    return b;
}

#define BUFFER_BYTES (ROWS * (ROOM * (int)sizeof(Key) + 4 + (int)sizeof(real) + (int)sizeof(Rank)))

__device__ __forceinline__ i64 row_at(const Args &a, i64 place) {
    const i64 at = place < a.n_rows ? place : a.n_rows - 1;
    return a.rows ? (i64)((const int *)a.rows)[at] : at;
}

__device__ __forceinline__ void cut_full(const Args &a, const Buffers &b, i64 first, int limit) {
    for (int r = threadIdx.x / 32; r < ROWS; r += WARPS) {
        const int n = b.count[r];
        if (n <= limit) continue;
        Rank least;
        const int left = cut(a, row_at(a, first + r), b.keys + r * ROOM, n, &least);
        if ((threadIdx.x & 31) == 0) {
            b.count[r] = left;
            if (left == KEEP && least > b.rank[r]) {
                b.bound[r] = score_at(least);
                b.rank[r] = least;
            }
        }
    }
}

__device__ __forceinline__ bool push(const Buffers &b, int r, real score, u32 place) {
    const int at = atomicAdd(b.count + r, 1);
    b.keys[r * ROOM + at] = make_key(score, place);
    return at >= LIMIT; // the one who fills a buffer votes for a cut
}

__device__ __forceinline__ void hand_over(const Args &a, const Buffers &b, i64 first) {
    cut_full(a, b, first, -1);
    __syncthreads();
    const i64 split = blockIdx.y;
    for (int e = threadIdx.x; e < ROWS * KEEP; e += THREADS) {
        const int r = e / KEEP, s = e % KEEP;
        if (first + r >= a.n_rows) continue;
        const Key none = {};
        ((Key *)a.kept)[((first + r) * a.n_splits + split) * KEEP + s] = s < b.count[r] ? b.keys[r * ROOM + s] : none;
        if (s == 0) ((double *)a.bounds)[(first + r) * a.n_splits + split] = (double)b.bound[r];
    }
}

#if FILTER
// Halves of a row: HALVES of them, a multiple of 16; in shared memory 8 more, so that no bank is hit twice.
#define STEPS (HALVES / 16)
#define STRIDE (HALVES + 8)
#define ROW_GROUPS (ROWS / 16)
#define COL_GROUPS (WARPS / ROW_GROUPS)
#define TILES (COLS / COL_GROUPS / 8)

extern "C" __global__ void __launch_bounds__(THREADS) filter(const Args a) {
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) unsigned char shared[];
    const Buffers b = buffers(shared);
    u16 *stages = (u16 *)(shared + (BUFFER_BYTES + 15) / 16 * 16);
    const i64 first = (i64)blockIdx.x * ROWS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int row_group = warp % ROW_GROUPS, col_group = warp / ROW_GROUPS;
    const int g = lane / 4, t = lane % 4;
    const i64 begin = a.n_cols * blockIdx.y / a.n_splits, end = a.n_cols * (blockIdx.y + 1) / a.n_splits;

    // Fragments of the rows stay in registers.
    u32 rows[STEPS][4];
    const u16 *upper = (const u16 *)a.left16 + row_at(a, first + row_group * 16 + g) * HALVES;
    const u16 *lower = (const u16 *)a.left16 + row_at(a, first + row_group * 16 + g + 8) * HALVES;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        rows[s][0] = *(const u32 *)(upper + s * 16 + 2 * t);
        rows[s][1] = *(const u32 *)(lower + s * 16 + 2 * t);
        rows[s][2] = *(const u32 *)(upper + s * 16 + 8 + 2 * t);
        rows[s][3] = *(const u32 *)(lower + s * 16 + 8 + 2 * t);
    }
    const int my_rows[2] = {row_group * 16 + g, row_group * 16 + g + 8};

    auto fetch = [&](i64 from, int stage) {
        u16 *to = stages + stage * COLS * STRIDE;
        for (int e = threadIdx.x; e < COLS * (HALVES / 8); e += THREADS) {
            const int c = e / (HALVES / 8), piece = e % (HALVES / 8);
            const i64 column = from + c < a.n_cols ? from + c : a.n_cols - 1;
            copy16(to + c * STRIDE + piece * 8, (const u16 *)a.right16 + column * HALVES + piece * 8);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    fetch(begin, 0);
    __syncthreads();
    int stage = 0;
    for (i64 from = begin; from < end; from += COLS, stage ^= 1) {
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        if (from + COLS < end) fetch(from + COLS, stage ^ 1);
        const real bounds[2] = {b.bound[my_rows[0]], b.bound[my_rows[1]]};
        float score[TILES][4];
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) score[n][e] = 0;
        // A lane's address of ldmatrix: two tiles of eight columns, two halves of sixteen numbers.
        const int at_column = col_group * TILES * 8 + (lane / 16) * 8 + lane % 8;
        const u16 *at = stages + stage * COLS * STRIDE + at_column * STRIDE + (lane / 8 % 2) * 8;
#pragma unroll
        for (int s = 0; s < STEPS; ++s)
#pragma unroll
            for (int n = 0; n < TILES; n += 2) {
                u32 c[4];
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                             : "r"((u32)__cvta_generic_to_shared(at + n * 8 * STRIDE + s * 16)));
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                 : "+f"(score[n + h][0]), "+f"(score[n + h][1]), "+f"(score[n + h][2]),
                                   "+f"(score[n + h][3])
                                 : "r"(rows[s][0]), "r"(rows[s][1]), "r"(rows[s][2]), "r"(rows[s][3]),
                                   "r"(c[2 * h]), "r"(c[2 * h + 1]));
            }
        bool full = false, any = false;
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) any |= score[n][e] > bounds[e / 2];
        if (any) // seldom: one branch in place of one for each score
#pragma unroll
            for (int n = 0; n < TILES; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (score[n][e] > bounds[e / 2]) {
                        const i64 place = from + col_group * TILES * 8 + n * 8 + 2 * t + e % 2;
                        if (place < end) full |= push(b, my_rows[e / 2], score[n][e], (u32)place);
                    }
        if (__syncthreads_or(full)) {
            cut_full(a, b, first, KEEP + 2); // all that are nearly full: the warps share one stop
            __syncthreads();
        }
    }
    hand_over(a, b, first);
#endif
}
#endif

#define DEPTH 32
#define MINE (ROWS / 16)

extern "C" __global__ void __launch_bounds__(THREADS) exact(const Args a) {
    extern __shared__ __align__(16) unsigned char shared[];
    const Buffers b = buffers(shared);
    real *left = (real *)(shared + (BUFFER_BYTES + 15) / 16 * 16), *right = left + DEPTH * (ROWS + 1);
    const i64 first = (i64)blockIdx.x * ROWS;
    const int across = threadIdx.x % 16, down = threadIdx.x / 16;
    const i64 begin = a.n_cols * blockIdx.y / a.n_splits, end = a.n_cols * (blockIdx.y + 1) / a.n_splits;
    for (i64 from = begin; from < end; from += COLS) {
        real score[MINE][4];
#pragma unroll
        for (int i = 0; i < MINE; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) score[i][j] = 0;
        for (int k0 = 0; k0 < WIDTH; k0 += DEPTH) {
            __syncthreads();
            for (int e = threadIdx.x; e < ROWS * DEPTH; e += THREADS) {
                const int r = e / DEPTH, k = e % DEPTH;
                left[k * (ROWS + 1) + r] =
                    k0 + k < WIDTH ? ((const real *)a.left)[row_at(a, first + r) * WIDTH + k0 + k] : (real)0;
            }
            for (int e = threadIdx.x; e < COLS * DEPTH; e += THREADS) {
                const int c = e / DEPTH, k = e % DEPTH;
                const i64 column = from + c < a.n_cols ? from + c : a.n_cols - 1;
                right[k * (COLS + 1) + c] =
                    k0 + k < WIDTH ? ((const real *)a.right)[column * WIDTH + k0 + k] : (real)0;
            }
            __syncthreads();
            const int depth = WIDTH - k0 < DEPTH ? WIDTH - k0 : DEPTH;
            for (int k = 0; k < depth; ++k) {
                real l[MINE], r[4];
#pragma unroll
                for (int i = 0; i < MINE; ++i) l[i] = left[k * (ROWS + 1) + down * MINE + i];
#pragma unroll
                for (int j = 0; j < 4; ++j) r[j] = right[k * (COLS + 1) + across + 16 * j];
#pragma unroll
                for (int i = 0; i < MINE; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) score[i][j] = fma(l[i], r[j], score[i][j]);
            }
        }
        bool full = false;
#pragma unroll
        for (int i = 0; i < MINE; ++i) {
            const Rank bound = b.rank[down * MINE + i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const i64 place = from + across + 16 * j;
                if (place < end && score[i][j] == score[i][j] && ordered(score[i][j]) > bound)
                    full |= push(b, down * MINE + i, score[i][j], (u32)place);
            }
        }
        if (__syncthreads_or(full)) {
            cut_full(a, b, first, KEEP + 2); // all that are nearly full: the warps share one stop
            __syncthreads();
        }
    }
    hand_over(a, b, first);
}

#define REFINE_WARPS 4

extern "C" __global__ void __launch_bounds__(REFINE_WARPS * 32) refine(const Args a) {
    extern __shared__ __align__(16) unsigned char shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const i64 place = (i64)blockIdx.x * REFINE_WARPS + warp;
    if (place >= a.n_rows) return;
    const int total = (int)a.n_splits * KEEP;
    Key *keys = (Key *)shared + (i64)warp * total;
    const i64 row = row_at(a, place);
    const real *left = (const real *)a.left + row * WIDTH;
    const Key none = {};
    double bound = NO_SCORE;
    for (int s = 0; s < (int)a.n_splits; ++s) {
        const double other = ((const double *)a.bounds)[place * a.n_splits + s];
        bound = other > bound ? other : bound;
    }
    for (int s = lane; s < total; s += 32) {
        const Key key = ((const Key *)a.kept)[place * total + s];
        keys[s] = none;
        if (empty(key)) continue;
        const real *right = (const real *)a.right + (i64)place_of(key) * WIDTH;
        real score = 0;
#pragma unroll 4
        for (int k = 0; k < WIDTH; k += REALS) {
            real own[REALS], other[REALS];
            read16(left + k, own);
            read16(right + k, other);
#pragma unroll
            for (int e = 0; e < REALS; ++e) score = fma(own[e], other[e], score);
        }
        if (score == score) keys[s] = make_key(score, place_of(key));
    }
    __syncwarp();
    const int k = (int)a.k;
    bool sure = !(bound > NO_SCORE) || !a.filtered; // nothing was thrown away, or by these very scores
    for (int s = lane; s < total; s += 32) {
        const Key mine = keys[s];
        if (empty(mine)) continue;
        int rank = 0;
        for (int j = 0; j < total; ++j) rank += above(keys[j], mine);
        if (rank >= k) continue;
        const u32 column = place_of(mine);
        ((i64 *)a.ids)[row * k + rank] = a.col_ids ? ((const i64 *)a.col_ids)[column] : (i64)column;
        const real score = score_at(rank_of(mine));
        ((real *)a.scores)[row * k + rank] = score;
        if (rank == k - 1)
            sure = sure || (double)score > bound / a.unit + a.margin * (double)((const real *)a.norms)[row];
    }
    if (__ballot_sync(ALL_LANES, sure) == 0 && lane == 0) ((int *)a.unsure)[atomicAdd((int *)a.n_unsure, 1)] = (int)row;
}
