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
  explicit MemoryBudget(size_t max_bytes) : max_bytes_(max_bytes) {}

  size_t max_bytes() const { return max_bytes_; }
  size_t used_bytes() const { return used_; }
  uint64_t taken_bytes() const { return taken_; }  // since the start; only grows

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
      if (bytes > bytes_ && !budget_->take(bytes - bytes_)) return false;
      if (bytes < bytes_) budget_->used_ -= bytes_ - bytes;
      bytes_ = bytes;
      return true;
    }

   private:
    std::shared_ptr<MemoryBudget> budget_;
    size_t bytes_ = 0;
  };

 private:
  bool take(size_t bytes) {
    if (bytes > max_bytes_) return false;
    const bool has_room = used_.fetch_add(bytes) + bytes <= max_bytes_;
    if (has_room)
      taken_ += bytes;
    else
      used_ -= bytes;
    return has_room;
  }

  const size_t max_bytes_;
  std::atomic<size_t> used_{0};
  std::atomic<uint64_t> taken_{0};
};

}  // namespace octavo::http
