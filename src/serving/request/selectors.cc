#include "request/selectors.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/error_budget.h"
#include "base/go_numbers.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/kinds.h"
#include "request/query.h"

namespace holdfast::request {
namespace {

using cache::FieldRequirement;
using cache::LabelRequirement;
using Operator = LabelRequirement::Operator;

// --- Labels: a lexer and a recursive descent parser whose errors name the token found. ---

enum class Token : uint8_t {
  Error,
  End,
  Identifier,
  Open,
  Close,
  Comma,
  Not,
  Equals,
  DoubleEquals,
  NotEquals,
  Greater,
  Less,
  In,
  NotIn,
};

struct Lexeme {
  Token token;
  std::string text;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_special(char c) { return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<'; }

Token symbol(std::string_view text) {
  if (text == ")") return Token::Close;
  if (text == ",") return Token::Comma;
  if (text == "!") return Token::Not;
  if (text == "==") return Token::DoubleEquals;
  if (text == "=") return Token::Equals;
  if (text == ">") return Token::Greater;
  if (text == "<") return Token::Less;
  if (text == "!=") return Token::NotEquals;
  if (text == "(") return Token::Open;
  return Token::Error;
}

std::vector<Lexeme> scan(std::string_view text) {
  std::vector<Lexeme> lexemes;
  size_t at = 0;
  while (true) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at >= text.size() || text[at] == '\0') break;
    const size_t start = at;
    if (!is_special(text[at])) {
      while (at < text.size() && text[at] != '\0' && !is_special(text[at]) && !is_space(text[at])) ++at;
      const std::string_view word = text.substr(start, at - start);
      const Token token = word == "in" ? Token::In : word == "notin" ? Token::NotIn : Token::Identifier;
      lexemes.push_back({token, std::string(word)});
      continue;
    }
    // The longest run of symbols that forms an operator.
    size_t end = start;
    Token token = Token::Error;
    while (at < text.size() && is_special(text[at])) {
      const Token longer = symbol(text.substr(start, at + 1 - start));
      if (longer == Token::Error && token != Token::Error) break;
      ++at;
      if (longer != Token::Error) {
        token = longer;
        end = at;
      }
    }
    if (token == Token::Error) {
      lexemes.push_back(
          {Token::Error, "error expected: keyword found '" + std::string(text.substr(start, at - start)) + "'"});
    } else {
      at = end;
      lexemes.push_back({token, std::string(text.substr(start, end - start))});
    }
  }
  lexemes.push_back({Token::End, ""});
  return lexemes;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexemes_(scan(text)) {}

  Result<std::vector<LabelRequirement>> parse() {
    std::vector<LabelRequirement> requirements;
    while (true) {
      const Lexeme& first = look();
      const Token token = as_value(first.token);
      if (token == Token::End) break;
      if (token != Token::Identifier && token != Token::Not) {
        return bad_request("found '" + first.text + "', expected: !, identifier, or 'end of string'");
      }
      Result<LabelRequirement> requirement = parse_requirement();
      if (!requirement) return bad_request("unable to parse requirement: " + requirement.error().message);
      requirements.push_back(std::move(*requirement));
      const Lexeme next = take();
      if (next.token == Token::End) break;
      if (next.token != Token::Comma) {
        return bad_request("found '" + next.text + "', expected: ',' or 'end of string'");
      }
      const Token after = as_value(look().token);
      if (after != Token::Identifier && after != Token::Not) {
        return bad_request("found '" + look().text + "', expected: identifier after ','");
      }
    }
    // Equal keys keep their order.
    std::stable_sort(requirements.begin(), requirements.end(),
                     [](const LabelRequirement& a, const LabelRequirement& b) { return a.key < b.key; });
    return requirements;
  }

 private:
  // "in" and "notin" are ordinary values where a value is expected.
  static Token as_value(Token token) { return token == Token::In || token == Token::NotIn ? Token::Identifier : token; }
  const Lexeme& look() const { return lexemes_[at_]; }
  Lexeme take() {
    const Lexeme& lexeme = lexemes_[at_];
    if (at_ + 1 < lexemes_.size()) ++at_;
    return lexeme;
  }

  Result<LabelRequirement> parse_requirement() {
    LabelRequirement requirement;
    Lexeme key = take();
    const bool absent = key.token == Token::Not;
    if (absent) key = take();
    if (as_value(key.token) != Token::Identifier) return bad_request("found '" + key.text + "', expected: identifier");
    requirement.key = key.text;
    if (const std::vector<std::string> wrong = kinds::qualified_name_errors(key.text); !wrong.empty()) {
      return bad_request("<nil>: Invalid value: " + go_quote(key.text) + ": " + join(wrong, "; "));
    }
    if (look().token == Token::End || look().token == Token::Comma) {
      requirement.op = absent ? Operator::Absent : Operator::Exists;
      return requirement;
    }
    // "!key" followed by something: upstream keeps DoesNotExist and stops here; the caller then reports the error.
    if (absent) {
      requirement.op = Operator::Absent;
      return requirement;
    }
    const Lexeme op = take();
    Result<Unit> values = Unit{};
    bool number = false;
    switch (op.token) {
      case Token::In:
      case Token::NotIn:
        requirement.op = op.token == Token::In ? Operator::In : Operator::NotIn;
        values = parse_values(requirement.values);
        break;
      case Token::Equals:
      case Token::DoubleEquals:
      case Token::NotEquals:
        requirement.op = op.token == Token::NotEquals ? Operator::NotIn : Operator::In;
        values = parse_exact_value(requirement.values);
        break;
      case Token::Greater:
      case Token::Less:
        requirement.op = op.token == Token::Greater ? Operator::Greater : Operator::Less;
        values = parse_exact_value(requirement.values);
        number = true;
        break;
      default:
        return bad_request("found '" + op.text + "', expected: in, notin, =, ==, !=, gt, lt");
    }
    if (!values) return values.take_error();
    std::sort(requirement.values.begin(), requirement.values.end());
    requirement.values.erase(std::unique(requirement.values.begin(), requirement.values.end()),
                             requirement.values.end());
    return check(std::move(requirement), number);
  }

  static Result<LabelRequirement> check(LabelRequirement requirement, bool number) {
    std::vector<std::string> wrong;
    ErrorBudget budget;
    const auto add = [&](std::string text) {
      budget.took(text.size());
      wrong.push_back(std::move(text));
    };
    for (size_t i = 0; i < requirement.values.size(); ++i) {
      const std::string& value = requirement.values[i];
      if (number && !go_parse_int(value) && budget.admits()) {
        add("values[" + std::to_string(i) + "]: Invalid value: " + go_quote(value) +
            ": for 'Gt', 'Lt' operators, the value must be an integer");
      }
    }
    for (size_t i = 0; i < requirement.values.size(); ++i) {
      const std::string& value = requirement.values[i];
      const std::vector<std::string> errors = kinds::label_value_errors(value);
      if (!errors.empty() && budget.admits()) {
        add("values[" + std::to_string(i) + "][" + requirement.key + "]: Invalid value: " + go_quote(value) + ": " +
            join(errors, "; "));
      }
    }
    if (wrong.empty()) return requirement;
    if (budget.left_out() > 0) wrong.push_back(left_out_text(budget.left_out()));
    return bad_request(aggregate_text(wrong));
  }

  Result<Unit> parse_values(std::vector<std::string>& values) {
    const Lexeme open = take();
    if (open.token != Token::Open) return bad_request("found '" + open.text + "' expected: '('");
    const Lexeme first = look();
    const Token token = as_value(first.token);
    if (token == Token::Close) {
      take();
      values.push_back("");
      return Unit{};
    }
    if (token != Token::Identifier && token != Token::Comma) {
      return bad_request("found '" + first.text + "', expected: ',', ')' or identifier");
    }
    Result<Unit> list = parse_identifiers(values);
    if (!list) return list;
    // Upstream quotes the token that opened the list here.
    if (take().token != Token::Close) return bad_request("found '" + first.text + "', expected: ')'");
    return Unit{};
  }

  Result<Unit> parse_identifiers(std::vector<std::string>& values) {
    while (true) {
      const Lexeme item = take();
      switch (as_value(item.token)) {
        case Token::Identifier: {
          values.push_back(item.text);
          const Lexeme& next = look();
          if (next.token == Token::Comma) continue;
          if (next.token == Token::Close) return Unit{};
          return bad_request("found '" + next.text + "', expected: ',' or ')'");
        }
        case Token::Comma:
          if (values.empty()) values.push_back("");
          if (look().token == Token::Close) {
            values.push_back("");
            return Unit{};
          }
          if (look().token == Token::Comma) values.push_back("");
          continue;
        default:
          return bad_request("found '" + item.text + "', expected: ',', or identifier");
      }
    }
  }

  Result<Unit> parse_exact_value(std::vector<std::string>& values) {
    const Token next = look().token;
    if (next == Token::End || next == Token::Comma) {
      values.push_back("");
      return Unit{};
    }
    const Lexeme value = take();
    if (as_value(value.token) != Token::Identifier) {
      return bad_request("found '" + value.text + "', expected: identifier");
    }
    values.push_back(value.text);
    return Unit{};
  }

  std::vector<Lexeme> lexemes_;
  size_t at_ = 0;
};

// --- Fields ---

Result<std::string> unescape(std::string_view text) {
  std::string out;
  bool escaped = false;
  for (const char c : text) {
    if (escaped) {
      if (c != '\\' && c != ',' && c != '=') {
        return bad_request("invalid field selector: invalid escape sequence: \\" + std::string(1, c));
      }
      out += c;
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == ',' || c == '=') {
      // Go prints the rune as a number.
      return bad_request("invalid field selector: unescaped character in value: " + std::to_string(int{c}));
    } else {
      out += c;
    }
  }
  if (escaped) return bad_request("invalid field selector: invalid escape sequence: \\");
  return out;
}

std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t start = 0;
  bool escaped = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (escaped) {
      escaped = false;
    } else if (text[i] == '\\') {
      escaped = true;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  terms.push_back(text.substr(start));
  return terms;
}

Result<int> resolve_field(std::string_view name, const kinds::SelectableFields& fields) {
  if (name == "metadata.name") return FieldRequirement::kName;
  const bool own_list = !fields.refusal.empty();
  if (name == "metadata.namespace" && (fields.namespaced || !own_list)) return FieldRequirement::kNamespace;
  std::string_view real = fields.only_aliases ? std::string_view{} : name;
  for (const auto& [alias, meant] : fields.aliases) {
    if (name == alias) real = meant;
  }
  for (size_t i = 0; i < fields.names.size(); ++i) {
    if (fields.names[i] == real) return static_cast<int>(i);
  }
  if (own_list) {
    std::string message(fields.refusal);
    return bad_request(message.replace(message.find("%s"), 2, name));
  }
  return bad_request(go_quote(name) + " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
}

}  // namespace

Result<std::vector<LabelRequirement>> parse_label_selector(std::string_view text) {
  if (text.empty()) return std::vector<LabelRequirement>{};
  return Parser(text).parse();
}

std::string label_selector_text(const std::vector<LabelRequirement>& requirements) {
  std::string out;
  for (const LabelRequirement& requirement : requirements) {
    if (!out.empty()) out += ',';
    switch (requirement.op) {
      case Operator::Exists:
        out += requirement.key;
        break;
      case Operator::Absent:
        out += "!" + requirement.key;
        break;
      case Operator::In:
        out += requirement.values.size() == 1 ? requirement.key + "=" + requirement.values[0]
                                              : requirement.key + " in (" + join(requirement.values, ",") + ")";
        break;
      case Operator::NotIn:
        out += requirement.values.size() == 1 ? requirement.key + "!=" + requirement.values[0]
                                              : requirement.key + " notin (" + join(requirement.values, ",") + ")";
        break;
      case Operator::Greater:
        out += requirement.key + ">" + requirement.values[0];
        break;
      case Operator::Less:
        out += requirement.key + "<" + requirement.values[0];
        break;
    }
  }
  return out;
}

Result<std::vector<FieldTerm>> parse_field_terms(std::string_view text) {
  std::vector<FieldTerm> parsed;
  if (text.empty()) return parsed;
  std::vector<std::string_view> terms = split_terms(text);
  std::sort(terms.begin(), terms.end());
  for (const std::string_view term : terms) {
    if (term.empty()) continue;
    const size_t at = term.find_first_of("=!");
    size_t op = at;
    while (op != std::string_view::npos && term[op] == '!' && (op + 1 >= term.size() || term[op + 1] != '=')) {
      op = term.find_first_of("=!", op + 1);
    }
    if (op == std::string_view::npos) {
      return bad_request("invalid selector: '" + std::string(text) + "'; can't understand '" + std::string(term) + "'");
    }
    const bool equal = term[op] == '=';
    const size_t width = equal && (op + 1 >= term.size() || term[op + 1] != '=') ? 1 : 2;
    Result<std::string> value = unescape(term.substr(op + width));
    if (!value) return value.take_error();
    parsed.push_back({term.substr(0, op), equal, std::move(*value)});
  }
  return parsed;
}

std::string_view required_node(const std::vector<FieldTerm>& terms) {
  for (const FieldTerm& term : terms) {
    if (term.equal && term.field == "spec.nodeName") return term.value;
  }
  return {};
}

Result<std::vector<FieldRequirement>> resolve_fields(const std::vector<FieldTerm>& terms,
                                                     const kinds::SelectableFields& fields) {
  std::vector<FieldRequirement> requirements;
  requirements.reserve(terms.size());
  for (const FieldTerm& term : terms) {
    if (term.field.empty() && term.value.empty()) continue;  // "=" selects everything.
    Result<int> field = resolve_field(term.field, fields);
    if (!field) return field.take_error();
    requirements.push_back({*field, term.equal, term.value});
  }
  return requirements;
}

std::optional<std::string> required_name(const std::vector<FieldRequirement>& fields) {
  for (const FieldRequirement& requirement : fields) {
    if (requirement.field == FieldRequirement::kName && requirement.equal) return requirement.value;
  }
  return std::nullopt;
}

}  // namespace holdfast::request
