// Matrix multiplication: C = A B, for square matrices of doubles.
//
// Durable: C, four rows an operation (22 KiB of the usual size) if no other number of elements is asked for, and each thread's count of
// finished elements. Four rows are computed in the thread's own memory, which stays in the cache, and then put into C.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "inputs.hpp"
#include "kept_array.hpp"

namespace bench {
namespace {

constexpr std::uint64_t rows_each = 4;  // computed together

class MatrixMultiply final : public EngineJob {
public:
    MatrixMultiply(const Shape& shape, std::uint64_t rows)
        : EngineJob(shape), rows_(std::max<std::uint64_t>(rows, 1)),
          elements_each_(shape.operation_size != 0 ? shape.operation_size : rows_each * rows_)
    {
    }

    void load() override
    {
        a_ = make_matrix(rows_, 21);
        b_ = make_matrix(rows_, 22);
        compute_expected();
        c_ = kept_array<E, double>("bench.matrix_multiply.result", rows_ * rows_);
        own_ = kept_array<E, Own>("bench.matrix_multiply.threads", shape_.threads);
    }
    void prepare() override
    {
        refill<E>(own_[0].mutex, c_, rows_ * rows_ * sizeof(double));
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            E::Operation<1> operation;
            operation.lock(own_[thread].mutex);
            own_[thread].elements_done = std::uint64_t{0};
        }
    }
    void work(Context& context) override
    {
        Own& own = own_[context.thread];
        std::vector<double> block(rows_each * rows_);
        const Part part = part_of(context.thread, rows_);
        for (std::uint64_t first = part.first; first < part.last; first += rows_each) {
            const std::uint64_t last = std::min(first + rows_each, part.last);
            multiply(first, last, block.data());
            const std::uint64_t elements = (last - first) * rows_;
            for (std::uint64_t at = 0; at < elements; at += elements_each_) {
                const std::uint64_t count = std::min(elements_each_, elements - at);
                put(own, c_ + first * rows_ + at, block.data() + at, count);
                context.changed_bytes += (count + 1) * sizeof(double);
            }
        }
    }
    std::string fault() override
    {
        std::uint64_t done = 0;
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            done += own_[thread].elements_done;
        }
        if (done != items()) {
            return "the threads have counted " + std::to_string(done) + " elements of " + std::to_string(items());
        }
        return std::equal(expected_.begin(), expected_.end(), c_) ? std::string() : "the matrix is not the product";
    }
    [[nodiscard]] std::uint64_t items() const override { return rows_ * rows_; }

private:
    struct alignas(64) Own {
        E::Mutex mutex;
        E::Durable<std::uint64_t> elements_done;
    };

    /// One operation.
    static void put(Own& own, double* place, const double* elements, std::uint64_t count)
    {
        E::Operation<1> operation;
        operation.lock(own.mutex);
        E::about_to_write(place, count * sizeof(double));
        std::memcpy(place, elements, count * sizeof(double));
        own.elements_done = own.elements_done + count;
    }

    /// Rows [first, last) of the product. Each row of B that is read serves all of them.
    void multiply(std::uint64_t first, std::uint64_t last, double* __restrict block) const noexcept
    {
        const std::uint64_t n = rows_;
        std::fill_n(block, (last - first) * n, 0.0);
        for (std::uint64_t k = 0; k < n; ++k) {
            const double* const b = b_.data() + k * n;
            for (std::uint64_t row = first; row < last; ++row) {
                const double a = a_[row * n + k];
                double* const c = block + (row - first) * n;
                // Four at a time: the time of a loop of 32 bytes would depend on where the linker has put it, by 60 %.
                std::uint64_t column = 0;
                for (; column + 4 <= n; column += 4) {
                    c[column] += a * b[column];
                    c[column + 1] += a * b[column + 1];
                    c[column + 2] += a * b[column + 2];
                    c[column + 3] += a * b[column + 3];
                }
                for (; column < n; ++column) {
                    c[column] += a * b[column];
                }
            }
        }
    }

    /// Element by element, as the definition has it. The sums are exact (inputs.hpp), so their order does not matter.
    void compute_expected()
    {
        expected_.resize(rows_ * rows_);
        std::vector<double> column(rows_);
        for (std::uint64_t j = 0; j < rows_; ++j) {
            for (std::uint64_t k = 0; k < rows_; ++k) {
                column[k] = b_[k * rows_ + j];
            }
            for (std::uint64_t i = 0; i < rows_; ++i) {
                double sum = 0;
                for (std::uint64_t k = 0; k < rows_; ++k) {
                    sum += a_[i * rows_ + k] * column[k];
                }
                expected_[i * rows_ + j] = sum;
            }
        }
    }

    const std::uint64_t rows_;
    const std::uint64_t elements_each_;
    std::vector<double> a_;
    std::vector<double> b_;
    std::vector<double> expected_;
    double* c_ = nullptr;
    Own* own_ = nullptr;
};

}  // namespace

/// size: rows of each matrix.
Work make_matrix_multiply(const Shape& shape) { return {nullptr, std::make_unique<MatrixMultiply>(shape, shape.size_or(704, 64))}; }

}  // namespace bench
