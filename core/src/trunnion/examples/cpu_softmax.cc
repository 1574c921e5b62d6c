// Softmax over rows on the CPU, in launches that each need the one before. A block is one row, or a part of the columns.
#include <math.h>
#include <trunnion/block.h>

namespace softmax {

// What is known of a row: its largest element, and one over the sum of exponentials from there.
struct Statistics {
  double largest;
  double factor;
};

// The exponentials of a row lie in scratch, and are added up pairwise: that loses less than a running sum.
template <typename T>
void row_statistics(const T* x, Statistics* statistics, int64_t n, const trunnion_block_t* block) {
  const T* row = x + block->index[0] * n;
  double largest = row[0];
  for (int64_t i = 1; i < n; ++i) largest = fmax(largest, row[i]);
  double* terms = static_cast<double*>(block->shared);
  for (int64_t i = 0; i < n; ++i) terms[i] = exp(row[i] - largest);
  for (int64_t left = n; left > 1; left = (left + 1) / 2) {
    for (int64_t i = 0; i < left / 2; ++i) terms[i] += terms[left - 1 - i];
  }
  statistics[block->index[0]] = {largest, 1 / terms[0]};
}

template <typename T>
void normalise(const T* x, const Statistics* statistics, T* y, int64_t n, const trunnion_block_t* block) {
  const int64_t start = block->index[0] * n;
  const Statistics& row = statistics[block->index[0]];
  for (int64_t i = start; i < start + n; ++i) {
    y[i] = static_cast<T>(exp(x[i] - row.largest) * row.factor);
  }
}

// The logarithm takes the place of the probability; computed anew, because that of a small one would be inexact.
template <typename T>
void take_logarithm(const T* x, const Statistics* statistics, T* y, int64_t n,
                    const trunnion_block_t* block) {
  const int64_t start = block->index[0] * n;
  const Statistics& row = statistics[block->index[0]];
  for (int64_t i = start; i < start + n; ++i) y[i] = static_cast<T>(x[i] - row.largest + log(row.factor));
}

}  // namespace softmax

// Count of each column how often it is the first largest one of a row. Rows may be counted by several threads at once.
extern "C" void count_peaks(const float* y, int64_t* peaks, int64_t n, const trunnion_block_t* block) {
  const float* row = y + block->index[0] * n;
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) best = row[i] > row[best] ? i : best;
  __atomic_fetch_add(&peaks[best], 1, __ATOMIC_RELAXED);
}
