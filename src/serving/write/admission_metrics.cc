#include "write/admission_metrics.h"

#include <string>

namespace holdfast::write {

namespace {

constexpr double kStepBounds[] = {0.005, 0.025, 0.1, 0.5, 1, 2.5};
constexpr double kWebhookBounds[] = {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25};

// kube-apiserver counts failures without an HTTP status under a code that no server sends.
constexpr int kNoStatus = 600;

std::string_view text(bool value) { return value ? "true" : "false"; }
double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

AdmissionMetrics::AdmissionMetrics(MetricRegistry& registry)
    : steps_(registry.histograms("apiserver_admission_step_admission_duration_seconds",
                                 "Duration of a step of admission, by step, operation and whether the request was "
                                 "rejected.",
                                 kStepBounds, {"type", "operation", "rejected"})),
      durations_(registry.histograms("apiserver_admission_webhook_admission_duration_seconds",
                                     "Duration of calls of admission webhooks, by name, operation and whether the "
                                     "request was rejected.",
                                     kWebhookBounds, {"name", "type", "operation", "rejected"})),
      calls_(registry.counters("apiserver_admission_webhook_request_total",
                               "Calls of admission webhooks, by name, type, operation, code and whether the request "
                               "was rejected.",
                               {"name", "type", "operation", "code", "rejected"})),
      rejections_(registry.counters("apiserver_admission_webhook_rejection_count",
                                    "Requests that an admission webhook rejected, by name, type, operation, kind of "
                                    "error and code.",
                                    {"name", "type", "operation", "error_type", "rejection_code"})),
      failed_open_(registry.counters("apiserver_admission_webhook_fail_open_count",
                                     "Failed calls of admission webhooks that were ignored, by name and type.",
                                     {"name", "type"})) {}

void AdmissionMetrics::step_done(std::string_view operation, std::string_view step, bool rejected, Time took) {
  steps_.with({step, operation, text(rejected)}).observe(seconds(took));
}

void AdmissionMetrics::webhook_called(const Call& call, Result result, int code, Time took) {
  const bool rejected = result != Result::Allowed;
  if (code == 0) code = result == Result::Failed ? kNoStatus : 200;
  const std::string code_text = std::to_string(code);
  durations_.with({call.webhook, call.type, call.operation, text(rejected)}).observe(seconds(took));
  calls_.with({call.webhook, call.type, call.operation, code_text, text(rejected)}).add();
  if (!rejected) return;
  const bool failed = result == Result::Failed;
  rejections_
      .with({call.webhook, call.type, call.operation, failed ? "calling_webhook_error" : "no_error",
             failed ? "0" : std::string_view(code_text)})
      .add();
}

void AdmissionMetrics::failed_open(const Call& call) { failed_open_.with({call.webhook, call.type}).add(); }

}  // namespace holdfast::write
