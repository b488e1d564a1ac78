#include "request/negotiate.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/strings.h"
#include "request/query.h"

namespace holdfast::request {
namespace {

constexpr std::array<Format, 4> kFormats = {Format::Json, Format::Yaml, Format::Protobuf, Format::Cbor};

bool serves_cbor(const Gates& gates) { return gates.on(Gate::CBORServingAndStorage); }

constexpr size_t kMaxClauses = 64;
constexpr size_t kMaxDropTargets = 8;
constexpr size_t kMaxDropBytes = 256;

// Trims HTTP's optional whitespace.
std::string_view trim_spaces(std::string_view text) { return trim(text, " \t"); }

// End of the quoted string that begins at `at`; npos if it is unterminated and the quote is an ordinary character. Then
// so are all quotes after it: they are escaped, or one of them would be its end.
size_t end_of_quoted(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at;
    if (text[at] == '\\') ++at;
  }
  return std::string_view::npos;
}

// Splits a text at the separators outside quotes, in linear time.
class Pieces {
 public:
  Pieces(std::string_view text, char separator, bool quotes = true)
      : rest_(text), separator_(separator), quotes_(quotes) {}

  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  std::string_view next() {
    const size_t at = end_of_piece();
    const std::string_view piece = rest_.substr(0, at);
    rest_ = at == std::string_view::npos ? std::string_view{} : rest_.substr(at + 1);
    return piece;
  }

 private:
  size_t end_of_piece() {
    if (!quotes_) return rest_.find(separator_);
    for (size_t at = 0; at < rest_.size(); ++at) {
      if (rest_[at] == separator_) return at;
      if (rest_[at] != '"') continue;
      const size_t end = end_of_quoted(rest_, at);
      if (end == std::string_view::npos) {
        quotes_ = false;
        return rest_.find(separator_, at);
      }
      at = end;
    }
    return std::string_view::npos;
  }

  std::string_view rest_;
  const char separator_;
  bool quotes_;  // Whether quotes have a meaning; not after an unterminated one.
};

// Our spelling of a known parameter name; empty for others, which nothing reads.
std::string_view known_name(std::string_view name, AcceptRule rule) {
  for (const std::string_view known : {"as", "g", "v", "q", "stream", "sv", "pretty", "drop", "mf"}) {
    if (rule == AcceptRule::Kubernetes ? name == known : equals_ignoring_case(name, known)) return known;
  }
  return {};
}

std::string_view without_quotes(std::string_view text, AcceptClause& clause) {
  if (text.size() < 2 || text.front() != '"' || end_of_quoted(text, 0) != text.size() - 1) return text;
  text = text.substr(1, text.size() - 2);
  if (text.find('\\') == std::string_view::npos) return text;
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) plain += text[i] == '\\' ? text[++i] : text[i];
  clause.unescaped.push_back(std::make_unique<const std::string>(std::move(plain)));
  return *clause.unescaped.back();
}

// Splits at the first separator outside quotes; `rest` becomes the remainder.
std::string_view cut(std::string_view& rest, char separator, bool quotes = true) {
  Pieces pieces(rest, separator, quotes);
  const std::string_view first = pieces.next();
  rest = pieces.rest();
  return first;
}

// Upstream's comparison (goautoneg, acceptSlice.Less), which is not a strict weak order if q and specificity disagree.
bool tried_before(const AcceptClause& a, const AcceptClause& b) {
  if (a.q > b.q) return true;
  if (a.type != "*" && b.type == "*") return true;
  if (a.subtype != "*" && b.subtype == "*") return true;
  return false;
}

bool wants_pretty(const NegotiationInput& input) {
  if (!input.pretty.empty()) return parse_bool(input.pretty).value_or(false);
  return input.user_agent.starts_with("curl") || input.user_agent.starts_with("Wget") ||
         input.user_agent.starts_with("Mozilla/5.0");
}

bool streams(Format format) { return format != Format::Yaml; }

Error not_acceptable(std::string_view types) {
  return Error{Reason::NotAcceptable, "only the following media types are accepted: " + std::string(types)};
}

constexpr std::string_view kManagedFields = "metadata.managedFields";

// Whether the clause's parameters can be satisfied in this format; stores what they request.
bool accept_parameters(const AcceptClause& clause, const Offer& offer, Accepted& accepted) {
  bool transform = false;
  std::string_view as, group, version;
  for (const auto& [name, value] : clause.parameters) {
    if (name == "as") {
      transform = true;
      as = value;
    } else if (name == "g") {
      transform = true;
      group = value;
    } else if (name == "v") {
      transform = true;
      version = value;
    } else if (name == "stream") {
      if (!value.empty() && (!streams(accepted.format) || value != "watch")) return false;
    } else if (name == "sv") {
      if (!value.empty() && value != "v1") return false;
    } else if (name == "pretty") {
      accepted.pretty = value == "1";
    }
  }
  if (!transform) return offer.protobuf_objects || accepted.format != Format::Protobuf;
  if (!offer.transforms || group != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) return false;
  accepted.meta_version = version;
  if (as == "Table") {
    accepted.form = Form::Table;
    return offer.table && (accepted.format == Format::Json || accepted.format == Format::Yaml);
  }
  if (as == "PartialObjectMetadata") {
    accepted.form = Form::PartialMetadata;
    return true;
  }
  if (as == "PartialObjectMetadataList") {
    accepted.form = Form::PartialMetadataList;
    return true;
  }
  return false;
}

bool matches(const AcceptClause& clause, std::string_view type, std::string_view subtype) {
  if (clause.type == type && (clause.subtype == subtype || clause.subtype == "*")) return true;
  return clause.type == "*" && clause.subtype == "*";
}

bool matches(const AcceptClause& clause, Format format) {
  const std::string_view type = media_type(format);
  return matches(clause, "application", type.substr(type.find('/') + 1));
}

// drop=, mf= and ?showManagedFields: any one of them can omit managedFields.
void read_opt_out(const AcceptClause* clause, const NegotiationInput& input, const Offer& offer, const Gates& gates,
                  Accepted& accepted) {
  if (!gates.on(Gate::ManagedFieldsOptOut)) return;
  if (input.rule == AcceptRule::Kubernetes) {
    if (clause == nullptr || clause->parameter("drop").empty()) return;  // No other value gets here.
    accepted.ownership = Ownership::Omitted;
    accepted.opt_out_kind = "drop";
    return;
  }
  size_t path_bytes = 0;
  if (clause != nullptr) {
    for (const auto& [name, value] : clause->parameters) {
      if (name == "drop") {
        for (Pieces targets(value, '+'); !targets.done();) {
          const std::string_view target = targets.next();
          if (target == kManagedFields) {
            accepted.ownership = Ownership::Omitted;
            accepted.opt_out_kind = "drop";
          } else if (gates.on(Gate::DropAnyField) && offer.reads && !target.empty() &&
                     accepted.drop_paths.size() < kMaxDropTargets && path_bytes + target.size() <= kMaxDropBytes) {
            path_bytes += target.size();
            accepted.drop_paths.emplace_back(target);
          }
        }
      } else if (name == "mf") {
        if (value == "none") {
          accepted.ownership = Ownership::Omitted;
          if (accepted.opt_out_kind.empty()) accepted.opt_out_kind = "mf";
        } else if (accepted.ownership == Ownership::AsIs && value == "v1") {
          accepted.ownership = Ownership::V1;
        } else if (accepted.ownership == Ownership::AsIs && value == "v2" && gates.on(Gate::FieldsV2)) {
          accepted.ownership = Ownership::V2;
        }
      }
    }
  }
  if (offer.reads && input.has_show_managed_fields && !query_bool(input.show_managed_fields)) {
    accepted.ownership = Ownership::Omitted;
    if (accepted.opt_out_kind.empty()) accepted.opt_out_kind = "query";
  }
}

}  // namespace

std::string_view media_type(Format format) {
  switch (format) {
    case Format::Json:
      return "application/json";
    case Format::Yaml:
      return "application/yaml";
    case Format::Protobuf:
      return "application/vnd.kubernetes.protobuf";
    case Format::Cbor:
      break;
  }
  return "application/cbor";
}

bool AcceptClause::has(std::string_view name) const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const auto& parameter) { return parameter.first == name; });
}

std::string_view AcceptClause::parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return {};
}

std::vector<AcceptClause> parse_accept(std::string_view header, AcceptRule rule) {
  const bool quotes = rule == AcceptRule::Lenient;
  const auto trimmed = [quotes](std::string_view text) { return quotes ? trim_spaces(text) : trim(text, " "); };
  std::vector<AcceptClause> clauses;
  for (Pieces ranges(header, ',', quotes); !ranges.done() && clauses.size() < kMaxClauses;) {
    Pieces parts(trimmed(ranges.next()), ';', quotes);
    std::string_view range = parts.next();
    AcceptClause clause;
    clause.type = trimmed(cut(range, '/', quotes));
    if (range.empty()) {
      if (clause.type != "*") continue;
      clause.subtype = "*";
    } else {
      const std::string_view subtype = cut(range, '/', quotes);
      if (!range.empty()) continue;
      clause.subtype = trimmed(subtype);
    }
    while (!parts.done()) {
      std::string_view value = parts.next();
      const std::string_view name = known_name(trimmed(cut(value, '=', quotes)), rule);
      if (value.empty() || name.empty()) continue;
      std::string_view text = cut(value, '=', quotes);
      if (!value.empty()) continue;
      text = trimmed(text);
      if (quotes) text = without_quotes(text, clause);
      if (name == "q") {
        const std::string number(text);
        char* end = nullptr;
        const double q = std::strtod(number.c_str(), &end);
        clause.q = end == number.c_str() + number.size() && !number.empty() ? q : 0;
        continue;
      }
      // As in a map, the last of a repeated parameter wins.
      const auto same = std::find_if(clause.parameters.begin(), clause.parameters.end(),
                                     [&](const auto& parameter) { return parameter.first == name; });
      if (same != clause.parameters.end()) {
        same->second = text;
      } else {
        clause.parameters.emplace_back(name, text);
      }
    }
    clauses.push_back(std::move(clause));
  }
  // Go's sort is an insertion sort up to twelve elements; since the comparison is not an order, the algorithm matters.
  // Longer headers, which no client sends, are truncated.
  for (size_t i = 1; i < clauses.size(); ++i) {
    for (size_t j = i; j > 0 && tried_before(clauses[j], clauses[j - 1]); --j) std::swap(clauses[j], clauses[j - 1]);
  }
  return clauses;
}

bool may_match(const AcceptClause& clause, AcceptRule rule, const Gates& gates) {
  if (rule == AcceptRule::Lenient || !gates.on(Gate::ManagedFieldsOptOut)) return true;
  const std::string_view dropped = clause.parameter("drop");
  return dropped.empty() || dropped == kManagedFields;
}

std::span<const Format> served_formats(const Gates& gates) {
  static_assert(kFormats.back() == Format::Cbor);
  return std::span(kFormats).first(kFormats.size() - (serves_cbor(gates) ? 0 : 1));
}

std::string media_types(std::span<const Format> formats) {
  std::string types;
  for (const Format format : formats) {
    if (!types.empty()) types += ", ";
    types += media_type(format);
  }
  return types;
}

Result<Unit> check_streams(const Accepted& accepted, const Gates& gates) {
  if (streams(accepted.format)) return Unit{};
  std::string types = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
  if (serves_cbor(gates)) types += ", application/cbor-seq";
  return not_acceptable(types);
}

Result<Accepted> negotiate(const NegotiationInput& input, const Offer& offer, const Gates& gates) {
  Accepted accepted;
  if (input.accept.empty()) {
    accepted.pretty = wants_pretty(input);
    read_opt_out(nullptr, input, offer, gates, accepted);
    return accepted;
  }
  for (const AcceptClause& clause : parse_accept(input.accept, input.rule)) {
    if (!may_match(clause, input.rule, gates)) continue;
    for (const Format format : served_formats(gates)) {
      if (!matches(clause, format)) continue;
      Accepted candidate;
      candidate.format = format;
      if (!accept_parameters(clause, offer, candidate)) continue;
      candidate.pretty = candidate.pretty || wants_pretty(input);
      read_opt_out(&clause, input, offer, gates, candidate);
      return candidate;
    }
  }
  return not_acceptable(media_types(served_formats(gates)));
}

Accepted negotiate_error(const NegotiationInput& input, const Gates& gates) {
  const Offer plain{.protobuf_objects = true, .table = false, .transforms = false, .reads = false};
  Result<Accepted> accepted = negotiate(input, plain, gates);
  if (accepted) return *accepted;
  Accepted fallback;
  fallback.pretty = true;
  return fallback;
}

Result<Unit> check_accept_route(std::string_view accept, std::span<const std::string_view> produced) {
  if (accept.empty()) return Unit{};
  for (Pieces ranges(accept, ','); !ranges.done();) {
    std::string_view clause = ranges.next();
    const std::string_view type = trim_spaces(cut(clause, ';'));
    if (type == "*/*" || std::find(produced.begin(), produced.end(), type) != produced.end()) return Unit{};
  }
  std::string message = "406: Not Acceptable\n\nAvailable representations: ";
  for (size_t i = 0; i < produced.size(); ++i) message += (i == 0 ? "" : ", ") + std::string(produced[i]);
  Error error{Reason::NotAcceptable, std::move(message)};
  error.details.emplace();
  return error;
}

Result<Unit> check_accept_route(std::string_view accept, bool list_route, const Gates& gates) {
  std::array<std::string_view, 7> produced;
  size_t count = 0;
  for (const Format format : served_formats(gates)) produced[count++] = media_type(format);
  if (list_route) {
    produced[count++] = "application/json;stream=watch";
    produced[count++] = "application/vnd.kubernetes.protobuf;stream=watch";
    if (serves_cbor(gates)) produced[count++] = "application/cbor-seq";
  }
  return check_accept_route(accept, std::span(produced).first(count));
}

Result<PageForm> negotiate_page(const NegotiationInput& input, std::string_view kind, const Gates& gates) {
  if (trim_spaces(input.accept).empty()) return PageForm{};
  // In the order Kubernetes tries them; nullopt is text.
  constexpr std::optional<Format> kOffered[] = {Format::Json, Format::Yaml, std::nullopt, Format::Cbor};
  constexpr std::string_view kVersions[] = {"v1alpha1", "v1beta1"};
  for (const AcceptClause& clause : parse_accept(input.accept, input.rule)) {
    if (!may_match(clause, input.rule, gates)) continue;
    // Neither streaming nor server versions (sv) can be requested.
    if (!clause.parameter("stream").empty() || !clause.parameter("sv").empty()) continue;
    const bool transforms = clause.has("as") || clause.has("g") || clause.has("v");
    const auto* version = std::find(std::begin(kVersions), std::end(kVersions), clause.parameter("v"));
    const bool known =
        clause.parameter("as") == kind && clause.parameter("g") == "config.k8s.io" && version != std::end(kVersions);
    for (const std::optional<Format>& format : std::span(kOffered).first(serves_cbor(gates) ? 4 : 3)) {
      if (format) {
        if (!known || !matches(clause, *format)) continue;
        return PageForm{.text = false,
                        .format = *format,
                        .pretty = clause.parameter("pretty") == "1" || wants_pretty(input),
                        .version = *version};
      }
      if (!transforms && matches(clause, "text", "plain")) return PageForm{};
    }
  }
  std::string types = "application/json, application/yaml, text/plain";
  if (serves_cbor(gates)) types += ", application/cbor";
  return not_acceptable(types);
}

Result<Format> body_format(std::string_view content_type, const Gates& gates) {
  if (content_type.empty()) return Format::Json;
  std::string_view rest = content_type;
  const std::string type = to_lower(trim_spaces(cut(rest, ';')));
  for (const Format format : served_formats(gates)) {
    if (type == media_type(format)) return format;
  }
  return Error{Reason::UnsupportedMediaType,
               "the body of the request was in an unknown format - accepted media types include: " +
                   media_types(served_formats(gates))};
}

Result<PatchType> patch_type(std::string_view content_type, bool custom_resource, const Gates& gates) {
  std::string_view rest = content_type;
  std::string_view type = cut(rest, ';');
  if (!custom_resource) type = trim_spaces(type);
  if (type == "application/json-patch+json") return PatchType::Json;
  if (type == "application/merge-patch+json") return PatchType::Merge;
  if (type == "application/apply-patch+yaml") return PatchType::ApplyYaml;
  if (type == "application/apply-patch+cbor" && serves_cbor(gates)) return PatchType::ApplyCbor;
  if (type == "application/strategic-merge-patch+json" && !custom_resource) return PatchType::Strategic;
  if (custom_resource) {
    std::string message =
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    if (serves_cbor(gates)) message += ", application/apply-patch+cbor";
    return Error{Reason::UnsupportedMediaType, std::move(message)};
  }
  Error error{Reason::UnsupportedMediaType, "415: Unsupported Media Type"};
  error.details.emplace();
  return error;
}

}  // namespace holdfast::request
