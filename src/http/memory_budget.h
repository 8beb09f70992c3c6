// Memory that the requests of a server may take together: their bodies, and the work on them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace octavo::http {

class MemoryBudget {
 public:
  static constexpr size_t kSmallBytes = size_t{1} << 20;

  explicit MemoryBudget(size_t max_bytes) : max_bytes_(max_bytes) {}

  size_t max_bytes() const { return max_bytes_; }
  // What one share may have: the rest is for small ones, which a large one is not to keep waiting.
  static constexpr size_t largest_share(size_t max_bytes) { return max_bytes - max_bytes / 8; }
  size_t used_bytes() const { return used_; }

  // What one request has of it; given back at the end. Of one thread at a time.
  class Share {
   public:
    explicit Share(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
    Share(Share&& other) noexcept
        : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (budget_) budget_->used_ -= bytes_;
    }

    // False: there is not so much left, and the share stays as it was.
    bool resize(size_t bytes) {
      if (bytes > bytes_ && !budget_->take(bytes - bytes_, budget_->room_for(bytes))) return false;
      if (bytes < bytes_) budget_->used_ -= bytes_ - bytes;
      bytes_ = bytes;
      return true;
    }

   private:
    std::shared_ptr<MemoryBudget> budget_;
    size_t bytes_ = 0;
  };

 private:
  // Of which a share of so many bytes may be the last part.
  size_t room_for(size_t bytes) const {
    return bytes > kSmallBytes ? largest_share(max_bytes_) : max_bytes_;
  }

  bool take(size_t bytes, size_t room) {
    size_t used = used_;
    do {
      if (used > room || bytes > room - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }

  const size_t max_bytes_;
  std::atomic<size_t> used_{0};
};

}  // namespace octavo::http
