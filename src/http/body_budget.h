// Memory that the bodies of all requests of a server may take together.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace octavo::http {

class BodyBudget {
 public:
  explicit BodyBudget(size_t max_bytes) : max_bytes_(max_bytes) {}

  // What one body has of it; given back at the end. Of one thread at a time.
  class Share {
   public:
    explicit Share(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
    Share(Share&& other) noexcept
        : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (budget_) budget_->used_ -= bytes_;
    }

    // False: there is not so much left, and the share stays as it was. REQUIRES: no less than
    // before.
    bool grow_to(size_t bytes) {
      const size_t more = bytes - bytes_;
      if (budget_->used_.fetch_add(more) + more > budget_->max_bytes_ && more > 0) {
        budget_->used_ -= more;
        return false;
      }
      bytes_ = bytes;
      return true;
    }

   private:
    std::shared_ptr<BodyBudget> budget_;
    size_t bytes_ = 0;
  };

 private:
  const size_t max_bytes_;
  std::atomic<size_t> used_{0};
};

}  // namespace octavo::http
