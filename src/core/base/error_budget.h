// Bounds the causes of one error. Many fields may be invalid, and each of them is described in a sentence that shows
// its value: without a limit, an error could be many times as long as the request.
//
//   ErrorBudget budget;
//   for (...) {
//     if (!budget.admits()) continue;  // Before the cause is formatted, which may be expensive.
//     causes.push_back(field_invalid(...));
//     budget.took(causes.back());
//   }
//   if (budget.left_out() > 0) causes.push_back(left_out_cause(budget.left_out()));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"

namespace holdfast {

class ErrorBudget {
 public:
  // False, and counted, if those before were too long together.
  bool admits() {
    if (bytes_ < limits::kReportedBytes) return true;
    ++left_out_;
    return false;
  }
  void took(size_t bytes) { bytes_ += bytes; }
  void took(const Cause& cause) { took(bytes_of(cause)); }
  void gave_back(const Cause& cause) { bytes_ -= bytes_of(cause); }
  void set_left_out(size_t count) { left_out_ = count; }
  size_t left_out() const { return left_out_; }

 private:
  static size_t bytes_of(const Cause& cause) { return cause.field.size() + cause.message.size(); }
  size_t bytes_ = 0, left_out_ = 0;
};

// metav1.CauseType of the cause that stands for others.
inline constexpr std::string_view kTooManyCauses = "TooMany";

inline std::string left_out_text(size_t count) {
  return "and " + std::to_string(count) + (count == 1 ? " more error" : " more errors");
}
// Stands for the causes that were not admitted.
inline Cause left_out_cause(size_t count) { return {std::string(kTooManyCauses), left_out_text(count), ""}; }

}  // namespace holdfast
