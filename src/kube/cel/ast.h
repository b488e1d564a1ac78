// The parsed expression tree and its source text. Private to the module.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "cel/types.h"

namespace holdfast::cel {

struct Function;
struct Overload;

enum class ExprKind : uint8_t { Unspecified, Literal, Ident, Select, Call, List, Map, Struct, Comprehension };

struct Expr;

// An entry of a map or field of a struct.
struct Entry {
  int32_t offset = 0;  // Of the colon.
  const Expr* key = nullptr;
  std::string_view field = {};
  Expr* value = nullptr;
  Expr* key_expr = nullptr;
  bool optional = false;
};

// Nodes are allocated in the compilation's arena. The checker stores its results in them.
struct Expr {
  ExprKind kind = ExprKind::Unspecified;
  bool test_only = false;  // Select: has().
  bool member = false;     // A call with a target.
  int32_t offset = 0;      // In code points.
  Val literal = {};
  std::string_view name = {};            // Identifier, selected field, function, or a struct's type name.
  Expr* operand = nullptr;               // Operand of a Select, target of a call.
  std::span<Expr*> args = {};            // Arguments of a call, elements of a list.
  std::span<const bool> optionals = {};  // List: which elements have '?'. Empty if none has.
  std::span<Entry> entries = {};

  // Comprehension.
  Expr* range = nullptr;
  Expr* init = nullptr;
  Expr* condition = nullptr;
  Expr* step = nullptr;
  Expr* result = nullptr;
  std::string_view variable = {}, variable2 = {}, accumulator = {};

  // Set by the checker.
  const Type* type = nullptr;
  bool is_reference = false;  // An Ident or Select that denotes the variable or type named `reference`.
  std::string_view reference = {};
  std::span<const Overload* const> overloads = {};  // Candidates for a call.
  const Function* function = nullptr;

  struct Sizes* sizes = nullptr;  // Set by the cost estimate.
};

// The text of an expression and its line starts, for error messages. The text must outlive it.
class Source {
 public:
  explicit Source(std::string_view text);

  std::string_view text() const { return text_; }
  int32_t code_points() const { return code_points_; }
  struct Location {
    int32_t line = -1, column = -1;  // 1-based and 0-based.
  };
  Location location(int32_t offset) const;
  // One error formatted like cel-go, with the source line and a caret.
  std::string display(Location at, std::string_view message) const;

 private:
  std::string_view text_;
  int32_t code_points_ = 0;
  std::vector<int32_t> line_starts_;        // In code points, after each newline.
  std::vector<uint32_t> line_start_bytes_;  // The same in bytes.
};

// Errors of one compilation, in the order found; printed in source order.
class Issues {
 public:
  explicit Issues(const Source& source) : source_(source) {}
  void add(int32_t offset, std::string message) { add(source_.location(offset), std::move(message)); }
  void add_without_location(std::string message) { add(Source::Location{}, std::move(message)); }
  void add_all(const Issues& others) {
    for (const Issue& issue : others.issues_) add(issue.at, issue.message);
  }
  bool empty() const { return count_ == 0; }
  std::string text() const;

 private:
  static constexpr size_t kMaxReported = 100;
  struct Issue {
    Source::Location at;
    std::string message;
  };
  void add(Source::Location at, std::string message) {
    if (++count_ <= kMaxReported) issues_.push_back({at, std::move(message)});
  }
  const Source& source_;
  std::vector<Issue> issues_;
  size_t count_ = 0;
};

// Names of operator functions.
namespace op {
inline constexpr std::string_view kConditional = "_?_:_", kAnd = "_&&_", kOr = "_||_", kNot = "!_", kNegate = "-_",
                                  kEquals = "_==_", kNotEquals = "_!=_", kLess = "_<_", kLessEquals = "_<=_",
                                  kGreater = "_>_", kGreaterEquals = "_>=_", kIn = "@in", kAdd = "_+_",
                                  kSubtract = "_-_", kMultiply = "_*_", kDivide = "_/_", kModulo = "_%_",
                                  kIndex = "_[_]", kOptSelect = "_?._", kOptIndex = "_[?_]",
                                  kNotStrictlyFalse = "@not_strictly_false";
}  // namespace op
inline constexpr std::string_view kAccumulator = "@result";

// Returns null if there were errors (added to `issues`).
Expr* parse(Arena& arena, const Source& source, Issues& issues, bool binds);

// Sets the types, references and overloads of all nodes; false if there were errors.
bool check(const Environment::State& environment, Arena& arena, Expr* root, Issues& issues);
// The checks of cel-go's validators: time and regex literals, mixed-type literals, formats.
void validate(Arena& arena, const Expr* root, Issues& issues);
// Bounds on the cost of evaluating a checked expression.
CostEstimate estimate_cost(const Environment::State& environment, Arena& arena, Expr* root);

}  // namespace holdfast::cel
