#include "table/json_path.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/strings.h"
#include "codec/codec.h"

namespace holdfast::table {
namespace {

struct Filter;

struct Step {
  enum class Kind { Field, Wildcard, Recursive, Slice, Filter, Union } kind;
  std::string name;                       // Field.
  std::optional<int64_t> from, to, step;  // Slice; a single index is from with to = from + 1.
  bool single_index = false;
  std::vector<std::string> names;  // Union of names.
  std::shared_ptr<Filter> filter;
};

using Path = std::vector<Step>;

struct Operand {
  std::optional<Value> literal;
  std::string literal_text;
  Path path;  // If there is no literal.
};

struct Filter {
  Operand left;
  std::string op;  // "" = exists
  Operand right;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Path> parse() {
    // Like kubectl's relaxed form: braces around the whole path are optional.
    if (text_.starts_with("{") && text_.ends_with("}")) text_ = text_.substr(1, text_.size() - 2);
    if (text_.starts_with("$")) at_ = 1;
    Path path;
    if (Result<Unit> ok = parse_steps(path, /*in_filter=*/false); !ok) return ok.take_error();
    return path;
  }

 private:
  Error fail(const std::string& what) const {
    return bad_request("invalid JSONPath \"" + std::string(text_) + "\": " + what + " at character " +
                       std::to_string(at_));
  }
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }

  Result<Unit> parse_steps(Path& path, bool in_filter) {
    while (!done()) {
      const char c = peek();
      if (in_filter && (c == ')' || c == ' ' || c == '=' || c == '!' || c == '<' || c == '>')) return Unit{};
      if (c == '.') {
        ++at_;
        if (!done() && peek() == '.') {
          ++at_;
          path.push_back({.kind = Step::Kind::Recursive});
          if (done() || peek() == '[') continue;
        }
        if (!done() && peek() == '[') continue;
        if (Result<Unit> ok = parse_name(path, in_filter); !ok) return ok;
      } else if (c == '[') {
        if (Result<Unit> ok = parse_brackets(path); !ok) return ok;
      } else if (path.empty() && !in_filter) {
        if (Result<Unit> ok = parse_name(path, in_filter); !ok) return ok;
      } else {
        return fail(std::string("unexpected '") + c + "'");
      }
    }
    return Unit{};
  }

  Result<Unit> parse_name(Path& path, bool in_filter) {
    std::string name;
    while (!done()) {
      const char c = peek();
      if (c == '\\' && at_ + 1 < text_.size()) {
        name += text_[at_ + 1];
        at_ += 2;
        continue;
      }
      if (c == '.' || c == '[' || (in_filter && (c == ')' || c == ' ' || c == '=' || c == '!' || c == '<' || c == '>')))
        break;
      name += c;
      ++at_;
    }
    if (name.empty())
      return in_filter || done() ? Result<Unit>(Unit{}) : Result<Unit>(fail("a member name is missing"));
    if (name == "*")
      path.push_back({.kind = Step::Kind::Wildcard});
    else
      path.push_back({.kind = Step::Kind::Field, .name = std::move(name)});
    return Unit{};
  }

  static bool parse_int(std::string_view text, std::optional<int64_t>& out) {
    if (text.empty()) return true;
    out = parse_number<int64_t>(text);
    return out.has_value();
  }

  Result<Unit> parse_brackets(Path& path) {
    ++at_;
    if (!done() && peek() == '?') return parse_filter(path);
    // Up to the closing bracket, ignoring brackets in quotes.
    const size_t start = at_;
    char quote = 0;
    while (!done() && (quote != 0 || peek() != ']')) {
      const char c = peek();
      if (quote == 0 && (c == '\'' || c == '"'))
        quote = c;
      else if (c == quote && text_[at_ - 1] != '\\')
        quote = 0;
      ++at_;
    }
    if (done()) return fail("']' is missing");
    const std::string_view inside = trim(text_.substr(start, at_ - start), " ");
    ++at_;
    if (inside == "*") {
      path.push_back({.kind = Step::Kind::Wildcard});
      return Unit{};
    }
    if (!inside.empty() && (inside.front() == '\'' || inside.front() == '"')) {
      Step step{.kind = Step::Kind::Union};
      size_t i = 0;
      while (i < inside.size()) {
        const char open = inside[i];
        if (open != '\'' && open != '"') return fail("a quoted name is missing");
        std::string name;
        for (++i; i < inside.size() && inside[i] != open; ++i) {
          if (inside[i] == '\\' && i + 1 < inside.size()) ++i;
          name += inside[i];
        }
        ++i;
        step.names.push_back(std::move(name));
        while (i < inside.size() && (inside[i] == ' ' || inside[i] == ',')) ++i;
      }
      path.push_back(std::move(step));
      return Unit{};
    }
    Step step{.kind = Step::Kind::Slice};
    const size_t colon = inside.find(':');
    bool ok;
    if (colon == std::string_view::npos) {
      step.single_index = true;
      ok = !inside.empty() && parse_int(inside, step.from);
    } else {
      const size_t second = inside.find(':', colon + 1);
      ok =
          parse_int(trim(inside.substr(0, colon), " "), step.from) &&
          parse_int(trim(inside.substr(colon + 1, second == std::string_view::npos ? second : second - colon - 1), " "),
                    step.to) &&
          (second == std::string_view::npos || parse_int(trim(inside.substr(second + 1), " "), step.step));
    }
    if (!ok) return fail("\"" + std::string(inside) + "\" is not an index");
    path.push_back(std::move(step));
    return Unit{};
  }

  Result<Unit> parse_operand(Operand& operand) {
    while (!done() && peek() == ' ') ++at_;
    if (done()) return fail("an operand is missing");
    const char c = peek();
    if (c == '@' || c == '.') {
      if (c == '@') ++at_;
      return parse_steps(operand.path, /*in_filter=*/true);
    }
    if (c == '\'' || c == '"') {
      for (++at_; !done() && peek() != c; ++at_) {
        if (peek() == '\\' && at_ + 1 < text_.size()) ++at_;
        operand.literal_text += peek();
      }
      if (done()) return fail("a quote is not closed");
      ++at_;
      operand.literal = Value::string(operand.literal_text);
      return Unit{};
    }
    while (!done() && peek() != ' ' && peek() != ')' && peek() != '=' && peek() != '!' && peek() != '<' &&
           peek() != '>')
      operand.literal_text += text_[at_++];
    if (operand.literal_text == "true" || operand.literal_text == "false") {
      operand.literal = Value::boolean(operand.literal_text == "true");
      return Unit{};
    }
    std::optional<int64_t> integer;
    if (!operand.literal_text.empty() && parse_int(operand.literal_text, integer)) {
      operand.literal = Value::integer(*integer);
      return Unit{};
    }
    double number = 0;
    const char* end = operand.literal_text.data() + operand.literal_text.size();
    if (std::from_chars(operand.literal_text.data(), end, number).ptr == end && !operand.literal_text.empty()) {
      operand.literal = Value::number(number);
      return Unit{};
    }
    return fail("\"" + operand.literal_text + "\" is not a literal");
  }

  Result<Unit> parse_filter(Path& path) {
    ++at_;
    if (done() || peek() != '(') return fail("'(' is missing");
    ++at_;
    if (++depth_ > kMostNested) return fail("filters are nested too deeply");
    auto filter = std::make_shared<Filter>();
    if (Result<Unit> ok = parse_operand(filter->left); !ok) return ok;
    while (!done() && peek() == ' ') ++at_;
    while (!done() && (peek() == '=' || peek() == '!' || peek() == '<' || peek() == '>')) filter->op += text_[at_++];
    if (!filter->op.empty()) {
      if (Result<Unit> ok = parse_operand(filter->right); !ok) return ok;
    }
    while (!done() && peek() == ' ') ++at_;
    if (at_ + 1 >= text_.size() || text_[at_] != ')' || text_[at_ + 1] != ']') return fail("\")]\" is missing");
    at_ += 2;
    Step step{.kind = Step::Kind::Filter};
    step.filter = std::move(filter);
    path.push_back(std::move(step));
    --depth_;
    return Unit{};
  }

  // Of filters in filters, which are parsed and evaluated recursively.
  static constexpr int kMostNested = 32;

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

bool compare(const Value& a, const std::string& op, const Value& b) {
  if (op == "==") return equal(a, b, Numbers::ByValue);
  if (op == "!=") return !equal(a, b, Numbers::ByValue);
  int order;
  if (a.is_number() && b.is_number())
    order = a.number_value() < b.number_value() ? -1 : a.number_value() > b.number_value();
  else if (a.is_string() && b.is_string())
    order = a.as_string().compare(b.as_string());
  else
    return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return op == ">=" && order >= 0;
}

size_t count_nodes(const Value& value) {
  size_t count = 1;
  if (value.is_list()) {
    for (const Value& item : value.items()) count += count_nodes(item);
  } else if (value.is_map()) {
    for (const Member& member : value.members()) count += count_nodes(member.value);
  }
  return count;
}

// Evaluates a path, one selected value after the other: nothing is kept but what is found.
//
// A path may select each value many times over: ..*..* as often as it has ancestors, ['a','a']['a','a'] four times.
// What is visited is therefore limited in proportion to the object.
class Walker {
 public:
  Walker(const Value& root, size_t most_found) : root_(root), most_found_(most_found) {}

  // Appends to `found`, up to the limit. False if an index is out of bounds or the limit of visits is reached.
  bool walk(std::span<const Step> steps, const Value& value, std::vector<Value>& found) {
    if (!visit()) return false;
    if (steps.empty()) {
      if (found.size() < most_found_) found.push_back(value);
      return true;
    }
    const Step& step = steps.front();
    const std::span<const Step> rest = steps.subspan(1);
    switch (step.kind) {
      case Step::Kind::Field:
        return member(value, step.name, rest, found);
      case Step::Kind::Union:
        return std::all_of(step.names.begin(), step.names.end(),
                           [&](const std::string& name) { return member(value, name, rest, found); });
      case Step::Kind::Wildcard:
        if (value.is_list()) return each(value.items(), rest, found);
        return !value.is_map() || std::all_of(value.members().begin(), value.members().end(),
                                              [&](const Member& member) { return walk(rest, member.value, found); });
      case Step::Kind::Recursive:
        return descend(value, rest, found);
      case Step::Kind::Filter:
        if (!value.is_list()) return true;
        for (const Value& item : value.items()) {
          // An item that cannot be compared does not match; but without visits nothing more can be evaluated.
          if (matches(*step.filter, item) && !walk(rest, item, found)) return false;
          if (exhausted_) return false;
        }
        return true;
      case Step::Kind::Slice:
        return slice(step, value, rest, found);
    }
    return false;
  }

 private:
  static constexpr size_t kVisits = 10'000, kVisitsPerNode = 64;

  bool visit() {
    if (++visits_ <= most_visits_) return true;
    if (most_visits_ == kVisits) most_visits_ = std::max(kVisits + 1, kVisitsPerNode * count_nodes(root_));
    exhausted_ = visits_ > most_visits_;
    return !exhausted_;
  }

  bool member(const Value& value, std::string_view name, std::span<const Step> rest, std::vector<Value>& found) {
    const Value* child = value.find(name);
    return child == nullptr ? visit() : walk(rest, *child, found);
  }

  bool each(std::span<const Value> items, std::span<const Step> rest, std::vector<Value>& found) {
    return std::all_of(items.begin(), items.end(), [&](const Value& item) { return walk(rest, item, found); });
  }

  bool descend(const Value& value, std::span<const Step> rest, std::vector<Value>& found) {
    if (!walk(rest, value, found)) return false;
    if (value.is_list()) {
      return std::all_of(value.items().begin(), value.items().end(),
                         [&](const Value& item) { return descend(item, rest, found); });
    }
    return !value.is_map() || std::all_of(value.members().begin(), value.members().end(),
                                          [&](const Member& member) { return descend(member.value, rest, found); });
  }

  bool slice(const Step& step, const Value& value, std::span<const Step> rest, std::vector<Value>& found) {
    if (!value.is_list()) return value.is_null();
    const int64_t count = value.count();
    const auto position = [count](int64_t index) { return index < 0 ? index + count : index; };
    if (step.single_index) {
      const int64_t index = position(*step.from);
      return index >= 0 && index < count && walk(rest, value.items()[index], found);
    }
    const int64_t from = step.from ? position(*step.from) : 0;
    const int64_t to = step.to ? std::min(position(*step.to), count) : count;
    const int64_t by = step.step.value_or(1);
    if (by <= 0 || from < 0) return false;
    // Without overflow if `by` is very large.
    for (int64_t i = from; i < to; i = by < to - i ? i + by : to) {
      if (!walk(rest, value.items()[i], found)) return false;
    }
    return true;
  }

  bool matches(const Filter& filter, const Value& item) {
    // Two are enough to see that it is not a single one.
    const size_t most = std::exchange(most_found_, 2);
    const auto resolve = [&](const Operand& operand) {
      std::vector<Value> out;
      if (operand.literal) {
        out.push_back(*operand.literal);
      } else if (!walk(operand.path, item, out)) {
        out.clear();
      }
      return out;
    };
    const std::vector<Value> left = resolve(filter.left);
    const std::vector<Value> right = filter.op.empty() ? std::vector<Value>() : resolve(filter.right);
    most_found_ = most;
    if (filter.op.empty()) return !left.empty();
    return left.size() == 1 && right.size() == 1 && compare(left[0], filter.op, right[0]);
  }

  const Value& root_;
  size_t most_found_;
  size_t visits_ = 0, most_visits_ = kVisits;
  bool exhausted_ = false;
};

}  // namespace

Result<Unit> check_json_path(std::string_view path) {
  Result<Path> parsed = Parser(path).parse();
  if (!parsed) return parsed.take_error();
  return Unit{};
}

bool evaluate_json_path(std::string_view path, const Value& root, std::vector<Value>& found, size_t most_found) {
  Result<Path> parsed = Parser(path).parse();
  return parsed && Walker(root, most_found).walk(*parsed, root, found);
}

std::string json_path_text(const std::vector<Value>& found) {
  std::string text;
  for (const Value& value : found) {
    if (&value != &found.front()) text += ' ';
    switch (value.kind()) {
      case Value::Kind::Null:
        text += "<no value>";
        break;
      case Value::Kind::String:
        text += value.as_string();
        break;
      case Value::Kind::Double:
        text += codec::float_text(value.as_double(), codec::FloatText::Go);
        break;
      case Value::Kind::List:
      case Value::Kind::Map:
        codec::encode_json_sorted(value, text);
        break;
      default:
        codec::encode_json(value, text);
        break;
    }
  }
  return text;
}

}  // namespace holdfast::table
