// The frame of a shared matrix G = L L': Cholesky and inverse of L together, by elimination of (G | I), in
// float64 and one block. Writes what takes factors there and back, padded with zeros to WIDTH columns:
// to = L, table = L^-T, back = L^-1. A pivot that is not above 1e-14 of the largest is counted.

extern "C" __global__ void __launch_bounds__(1024) cholesky_frame(const Args a) {
    extern __shared__ __align__(16) double room[];
    const int k = (int)a.rank;
    double *left = a.in_shared ? room : (double *)a.room, *right = left + (i64)k * k;
    __shared__ double largest;
    for (int e = threadIdx.x; e < k * k; e += blockDim.x) {
        left[e] = ((const double *)a.gram)[e];
        right[e] = e / k == e % k ? 1.0 : 0.0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        largest = 0;
        for (int j = 0; j < k; ++j) largest = left[j * k + j] > largest ? left[j * k + j] : largest;
    }
    __syncthreads();
    for (int j = 0; j < k; ++j) {
        const double pivot = left[j * k + j];
        const bool good = pivot > 1e-14 * largest;
        const double root = good ? sqrt(pivot) : 1.0;
        if (!good && threadIdx.x == 0) atomicAdd((int *)a.n_failed, 1);
        __syncthreads(); // all have read the pivot
        for (int e = threadIdx.x; e < k; e += blockDim.x) {
            if (e >= j) left[e * k + j] /= root;
            if (e <= j) right[j * k + e] /= root;
        }
        __syncthreads();
        const int below = k - j - 1;
        for (int e = threadIdx.x; e < below * k; e += blockDim.x) {
            const int i = j + 1 + e / k, c = e % k;
            const double factor = left[i * k + j];
            if (c <= j) // L^-1 has nothing above its diagonal
                right[i * k + c] -= factor * right[j * k + c];
            else if (c <= i)
                left[i * k + c] -= factor * left[c * k + j];
        }
        __syncthreads();
    }
    for (int e = threadIdx.x; e < k * WIDTH; e += blockDim.x) {
        const int i = e / WIDTH, c = e % WIDTH;
        ((real *)a.to)[e] = c < k && c <= i ? (real)left[i * k + c] : (real)0;
        ((real *)a.table)[e] = c < k && i <= c ? (real)right[c * k + i] : (real)0;
    }
    for (int e = threadIdx.x; e < WIDTH * k; e += blockDim.x) {
        const int i = e / k, c = e % k;
        ((real *)a.back)[e] = i < k && c <= i ? (real)right[i * k + c] : (real)0;
    }
}
