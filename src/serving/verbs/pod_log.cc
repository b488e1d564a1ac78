// The log of a container, streamed from the kubelet of its node.
#include "base/api_error.h"
#include "base/go_numbers.h"
#include "base/percent.h"
#include "base/text.h"
#include "codec/go_time.h"
#include "verbs/reads.h"
#include "verbs/subresources.h"

namespace holdfast::verbs {
namespace {

// PodLogOptions.
struct LogOptions {
  std::string container;
  bool follow = false, previous = false, timestamps = false, skip_verification = false;
  std::optional<int64_t> since_seconds, tail_lines, limit_bytes;
  std::optional<std::string> since_time;
  bool has_stream = false;
};

bool flag_of(const request::Query& query, std::string_view name) {
  const std::string* text = query.find(name);
  return text != nullptr && request::query_bool(*text);
}

Result<std::optional<int64_t>> number_of(const request::Query& query, std::string_view name) {
  const std::string* text = query.find(name);
  if (text == nullptr) return std::optional<int64_t>();
  Result<int64_t> number = go_parse_int(*text);
  if (!number) return bad_request(number.error().message);
  return std::optional<int64_t>(*number);
}

Result<std::optional<std::string>> time_of(const request::Query& query, std::string_view name) {
  const std::string* text = query.find(name);
  if (text == nullptr) return std::optional<std::string>();
  if (text->empty() || *text == "null") return std::optional<std::string>("0001-01-01T00:00:00Z");
  std::string why;
  const std::optional<UnixTime> time = codec::parse_go_time(*text, codec::TimeLayout::Seconds, why);
  if (!time) return bad_request(std::move(why));
  return std::optional<std::string>(format_rfc3339(*time));
}

Result<LogOptions> read_log_options(const request::Query& query) {
  LogOptions options{.container = std::string(query.get("container")),
                     .follow = flag_of(query, "follow"),
                     .previous = flag_of(query, "previous"),
                     .timestamps = flag_of(query, "timestamps"),
                     .skip_verification = flag_of(query, "insecureSkipTLSVerifyBackend"),
                     .has_stream = query.has("stream")};
  Result<std::optional<int64_t>> since_seconds = number_of(query, "sinceSeconds");
  if (!since_seconds) return since_seconds.take_error();
  Result<std::optional<std::string>> since_time = time_of(query, "sinceTime");
  if (!since_time) return since_time.take_error();
  Result<std::optional<int64_t>> tail_lines = number_of(query, "tailLines");
  if (!tail_lines) return tail_lines.take_error();
  Result<std::optional<int64_t>> limit_bytes = number_of(query, "limitBytes");
  if (!limit_bytes) return limit_bytes.take_error();
  options.since_seconds = *since_seconds;
  options.since_time = *since_time;
  options.tail_lines = *tail_lines;
  options.limit_bytes = *limit_bytes;
  return options;
}

// ValidatePodLogOptions, with the feature PodLogsQuerySplitStreams off as by default.
Result<Unit> validate(const LogOptions& options, std::string_view pod) {
  std::vector<Cause> causes;
  if (options.tail_lines && *options.tail_lines < 0) {
    causes.push_back(
        field_invalid("tailLines", std::to_string(*options.tail_lines), "must be greater than or equal to 0"));
  }
  if (options.limit_bytes && *options.limit_bytes < 1) {
    causes.push_back(field_invalid("limitBytes", std::to_string(*options.limit_bytes), "must be greater than 0"));
  }
  if (options.since_seconds && options.since_time) {
    causes.push_back(field_forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  } else if (options.since_seconds && *options.since_seconds < 1) {
    causes.push_back(field_invalid("sinceSeconds", std::to_string(*options.since_seconds), "must be greater than 0"));
  }
  if (options.has_stream) causes.push_back(field_forbidden("stream", "may not be specified"));
  if (!causes.empty()) return invalid({"", "PodLogOptions"}, pod, std::move(causes));
  return Unit{};
}

// The options as the kubelet reads them, sorted by name as Go encodes a query.
std::string log_query(const LogOptions& options) {
  std::string query;
  const auto add = [&query](std::string_view name, std::string_view value) {
    query.append(query.empty() ? "?" : "&").append(name).append("=");
    append_percent_encoded(query, value);
  };
  if (options.follow) add("follow", "true");
  if (options.limit_bytes) add("limitBytes", std::to_string(*options.limit_bytes));
  if (options.previous) add("previous", "true");
  if (options.since_seconds) add("sinceSeconds", std::to_string(*options.since_seconds));
  if (options.since_time) add("sinceTime", *options.since_time);
  if (options.tail_lines) add("tailLines", std::to_string(*options.tail_lines));
  if (options.timestamps) add("timestamps", "true");
  return query;
}

}  // namespace

Result<std::string> choose_container(const Value& pod, std::string_view asked) {
  const std::string name(pod.text_at("metadata", "name"));
  constexpr std::string_view kLists[] = {"initContainers", "containers", "ephemeralContainers"};
  const std::span<const Value> containers = pod.items_at("spec", "containers");
  if (asked.empty() && containers.size() == 1) return std::string(containers[0].text_at("name"));
  std::string all;
  for (const std::string_view list : kLists) {
    for (const Value& container : pod.items_at("spec", list)) {
      const std::string_view known = container.text_at("name");
      if (!asked.empty() && known == asked) return std::string(asked);
      all.append(all.empty() ? "" : " ").append(known);
    }
  }
  if (!asked.empty()) return bad_request("container " + std::string(asked) + " is not valid for pod " + name);
  if (containers.empty()) return bad_request("a container name must be specified for pod " + name);
  return bad_request("a container name must be specified for pod " + name + ", choose one of: [" + all + "]");
}

std::string kubelet_path(std::string_view how, const Value& pod) {
  std::string path = "/" + std::string(how);
  for (const std::string_view part : {pod.text_at("metadata", "namespace"), pod.text_at("metadata", "name")}) {
    path += '/';
    append_percent_encoded(path, part);
  }
  return path;
}

Task<void> serve_pod_log(call::Call& call, const nodes::Nodes& connections) {
  Result<LogOptions> options = read_log_options(call.query);
  if (!options) co_return respond_error(call, options.error());
  if (const Result<Unit> valid = validate(*options, call.info.name); !valid) {
    co_return respond_error(call, valid.error());
  }
  Result<cache::EntryRef> entry = co_await read_entry(call, call.info.name, std::nullopt);
  if (!entry) co_return respond_error(call, entry.error());
  const store::Blob body = (*entry)->body();
  Result<Value> pod = call.storage().codec().tree(call.arena, *body);
  if (!pod) co_return respond_error(call, pod.error());
  Result<std::string> container = choose_container(*pod, options->container);
  if (!container) co_return respond_error(call, container.error());
  const std::string_view node = pod->text_at("spec", "nodeName");
  if (node.empty()) {
    call.response.set_header("cache-control", "no-cache, private");
    co_return (void) call.response.send(204);
  }
  Result<nodes::Kubelet> kubelet = co_await connections.kubelet(call, std::string(node), {"", "pods"});
  if (!kubelet) co_return respond_error(call, kubelet.error());
  std::string path = kubelet_path("containerLogs", *pod) + "/";
  append_percent_encoded(path, *container);
  path += log_query(*options);
  co_await return_to_loop(call);
  co_await nodes::stream_log(call, connections, std::move(*kubelet), std::move(path), options->skip_verification);
}

}  // namespace holdfast::verbs
