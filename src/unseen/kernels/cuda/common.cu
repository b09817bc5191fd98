// Types and helpers of all programs. Included by none: programs are put together from files as text.
//
// TABLE says what the gathered rows are made of (64 double, 32 float, 16 half, 17 bfloat16), WIDE whether
// everything else is double. A row is read in pieces of 16 bytes; LANES lanes of a warp own a cell.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#if WIDE
typedef double real;
#define TINY 1.17549435e-38
#else
typedef float real;
#define TINY 1.17549435e-38f
#endif

#if TABLE == 64
typedef double entry;
#define ENTRIES 2
#elif TABLE == 32
typedef float entry;
#define ENTRIES 4
#else
typedef u16 entry;
#define ENTRIES 8
#endif

#define PIECES (WIDTH / ENTRIES)
#define OWN_PIECES ((PIECES + LANES - 1) / LANES)
#define OWN (OWN_PIECES * ENTRIES)
#define GROUPS (32 / LANES)
#define REALS (16 / (int)sizeof(real))
#define ALL_LANES 0xffffffffu

__device__ __forceinline__ void unpack(uint4 raw, real *out) {
#if TABLE == 64
    out[0] = __hiloint2double(raw.y, raw.x);
    out[1] = __hiloint2double(raw.w, raw.z);
#elif TABLE == 32
    out[0] = __uint_as_float(raw.x);
    out[1] = __uint_as_float(raw.y);
    out[2] = __uint_as_float(raw.z);
    out[3] = __uint_as_float(raw.w);
#else
    const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#if TABLE == 17
        out[2 * w] = __uint_as_float(words[w] << 16);
        out[2 * w + 1] = __uint_as_float(words[w] & 0xffff0000u);
#else
        float low, high;
        asm("{.reg .b16 a, b;\n mov.b32 {a, b}, %2;\n cvt.f32.f16 %0, a;\n cvt.f32.f16 %1, b;}"
            : "=f"(low), "=f"(high) : "r"(words[w]));
        out[2 * w] = low;
        out[2 * w + 1] = high;
#endif
    }
#endif
}

__device__ __forceinline__ void read16(const real *from, real *to) {
    const uint4 raw = *reinterpret_cast<const uint4 *>(from);
#if WIDE
    to[0] = __hiloint2double(raw.y, raw.x);
    to[1] = __hiloint2double(raw.w, raw.z);
#else
    to[0] = __uint_as_float(raw.x);
    to[1] = __uint_as_float(raw.y);
    to[2] = __uint_as_float(raw.z);
    to[3] = __uint_as_float(raw.w);
#endif
}

// What a lane owns of a vector of WIDTH reals: zeros where its pieces would lie behind the end.
__device__ __forceinline__ void read_own(const real *vector, int own, real *out) {
#pragma unroll
    for (int p = 0; p < OWN_PIECES; ++p) {
        const int piece = p * LANES + own;
#pragma unroll
        for (int part = 0; part < ENTRIES / REALS; ++part) {
            real *to = out + p * ENTRIES + part * REALS;
            if (piece < PIECES)
                read16(vector + piece * ENTRIES + part * REALS, to);
            else
#pragma unroll
                for (int e = 0; e < REALS; ++e) to[e] = 0;
        }
    }
}

__device__ __forceinline__ void write_own(real *vector, int own, const real *from) {
#pragma unroll
    for (int p = 0; p < OWN_PIECES; ++p) {
        const int piece = p * LANES + own;
        if (piece < PIECES)
#pragma unroll
            for (int part = 0; part < ENTRIES / REALS; ++part) {
                const real *of = from + p * ENTRIES + part * REALS;
                uint4 raw;
#if WIDE
                raw = make_uint4(__double2loint(of[0]), __double2hiint(of[0]), __double2loint(of[1]),
                                 __double2hiint(of[1]));
#else
                raw = make_uint4(__float_as_uint(of[0]), __float_as_uint(of[1]), __float_as_uint(of[2]),
                                 __float_as_uint(of[3]));
#endif
                *reinterpret_cast<uint4 *>(vector + piece * ENTRIES + part * REALS) = raw;
            }
    }
}

// A row of the table, as a lane owns it.
__device__ __forceinline__ void read_row(const entry *row, int own, real *out) {
#pragma unroll
    for (int p = 0; p < OWN_PIECES; ++p) {
        const int piece = p * LANES + own;
        uint4 raw = make_uint4(0, 0, 0, 0);
        if (piece < PIECES) raw = *reinterpret_cast<const uint4 *>(row + piece * ENTRIES);
        unpack(raw, out + p * ENTRIES);
    }
}

__device__ __forceinline__ real over_group(real value) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

__device__ __forceinline__ double over_warp(double value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// Sums of the same place of a vector over the groups of a warp; every lane then has them.
__device__ __forceinline__ void add_groups(real *vector) {
#pragma unroll
    for (int step = LANES; step < 32; step *= 2)
#pragma unroll
        for (int e = 0; e < OWN; ++e) vector[e] += __shfl_xor_sync(ALL_LANES, vector[e], step);
}

__device__ __forceinline__ real dot(const real *a, const real *b) {
    real total = 0;
#pragma unroll
    for (int e = 0; e < OWN; ++e) total += a[e] * b[e];
    return total;
}

__device__ __forceinline__ void copy16(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)),
                 "l"(from) : "memory");
#else
    *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
#endif
}

__device__ __forceinline__ void copies_done() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

__device__ __forceinline__ void meet(int warps) {
    if (warps == 1)
        __syncwarp();
    else
        __syncthreads();
}
