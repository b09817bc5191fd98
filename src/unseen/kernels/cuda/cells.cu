// Products over a pattern: scores of stored cells, and a sparse matrix times a tall one.
//
// A warp owns an item, which is a row or a part of a long one: (row, first cell, end, place). The place is -1
// where the item is the whole row, else that of its partial sum.

#define ITEM_WARPS 4

extern "C" __global__ void __launch_bounds__(ITEM_WARPS * 32) sddmm(const Args a, i64 n_items) {
    const i64 which = (i64)blockIdx.x * ITEM_WARPS + threadIdx.x / 32;
    if (which >= n_items) return;
    const i64 *item = (const i64 *)a.items + 4 * which;
    const int lane = threadIdx.x & 31, own = lane % LANES, group = lane / LANES;
    const i64 start = item[1];
    const int n = (int)(item[2] - start);
    real left[OWN];
    read_own((const real *)a.left + item[0] * WIDTH, own, left);
#pragma unroll 4
    for (int first = 0; first < n; first += GROUPS) {
        const bool inside = first + group < n;
        const i64 cell = start + (inside ? first + group : n - 1);
        real q[OWN];
        read_row((const entry *)a.table + (i64)((const int *)a.indices)[cell] * WIDTH, own, q);
        const real score = over_group(dot(q, left));
        if (own == 0 && inside) ((real *)a.out)[cell] = score;
    }
}

extern "C" __global__ void __launch_bounds__(ITEM_WARPS * 32) spmm(const Args a, i64 n_items) {
    const i64 which = (i64)blockIdx.x * ITEM_WARPS + threadIdx.x / 32;
    if (which >= n_items) return;
    const i64 *item = (const i64 *)a.items + 4 * which;
    const int lane = threadIdx.x & 31, own = lane % LANES, group = lane / LANES;
    const i64 start = item[1];
    const int n = (int)(item[2] - start);
    real sum[OWN];
#pragma unroll
    for (int e = 0; e < OWN; ++e) sum[e] = 0;
#pragma unroll 4
    for (int first = 0; first < n; first += GROUPS) {
        const bool inside = first + group < n;
        const i64 cell = start + (inside ? first + group : n - 1);
        real q[OWN];
        read_row((const entry *)a.table + (i64)((const int *)a.indices)[cell] * WIDTH, own, q);
        real weight = a.data ? ((const real *)a.data)[cell] : (real)a.data_all;
        if (!inside) weight = 0;
#pragma unroll
        for (int e = 0; e < OWN; ++e) sum[e] += weight * q[e];
    }
    add_groups(sum);
    real *to = item[3] < 0 ? (real *)a.out + item[0] * WIDTH : (real *)a.partial + item[3] * WIDTH;
    if (group == 0) write_own(to, own, sum);
}

// Partial sums of long rows, added in order.
extern "C" __global__ void __launch_bounds__(128) add_parts(const Args a, i64 n_rows) {
    const i64 place = blockIdx.x;
    const i64 first = ((const i64 *)a.part_ptr)[place], end = ((const i64 *)a.part_ptr)[place + 1];
    real *out = (real *)a.out + (i64)((const int *)a.part_rows)[place] * WIDTH;
    for (int k = threadIdx.x; k < WIDTH; k += 128) {
        real total = 0;
#pragma unroll 8
        for (i64 part = first; part < end; ++part) total += ((const real *)a.partial)[part * WIDTH + k];
        out[k] = total;
    }
}
