// Expressions as parsed, and the source they were parsed from. Private to the module.
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

// One entry of a map, or field of a struct.
struct Entry {
  int32_t offset = 0;  // Of the colon.
  const Expr* key = nullptr;
  std::string_view field = {};
  Expr* value = nullptr;
  Expr* key_expr = nullptr;
  bool optional = false;
};

// Nodes are in the arena of the compilation. The checker writes what it found into them.
struct Expr {
  ExprKind kind = ExprKind::Unspecified;
  bool test_only = false;  // Select: has().
  bool member = false;     // Call with a target.
  int32_t offset = 0;      // In code points.
  Val literal = {};
  std::string_view name = {};            // Ident, selected field, function, or name of a struct's type.
  Expr* operand = nullptr;               // Select; target of a call.
  std::span<Expr*> args = {};            // Of a call, or elements of a list.
  std::span<const bool> optionals = {};  // List: elements with '?'. Empty: none.
  std::span<Entry> entries = {};

  // Comprehension.
  Expr* range = nullptr;
  Expr* init = nullptr;
  Expr* condition = nullptr;
  Expr* step = nullptr;
  Expr* result = nullptr;
  std::string_view variable = {}, variable2 = {}, accumulator = {};

  // Written by the checker.
  const Type* type = nullptr;
  bool is_reference = false;  // An Ident or Select that stands for a variable or a type named `reference`.
  std::string_view reference = {};
  std::span<const Overload* const> overloads = {};  // That a call may take.
  const Function* function = nullptr;

  struct Sizes* sizes = nullptr;  // Written by the estimate.
};

// The text of an expression with its lines, for error messages. The text must outlive it.
class Source {
 public:
  explicit Source(std::string_view text);

  std::string_view text() const { return text_; }
  int32_t code_points() const { return code_points_; }
  struct Location {
    int32_t line = -1, column = -1;  // From 1 and from 0.
  };
  Location location(int32_t offset) const;
  // One error as cel-go prints it, with the line and a caret.
  std::string display(Location at, std::string_view message) const;

 private:
  std::string_view text_;
  int32_t code_points_ = 0;
  std::vector<int32_t> line_starts_;        // In code points, after each newline.
  std::vector<uint32_t> line_start_bytes_;  // The same in bytes.
};

// Errors of one compilation, in the order found; printed in the order of their places.
class Issues {
 public:
  explicit Issues(const Source& source) : source_(source) {}
  void add(int32_t offset, std::string message) { add(source_.location(offset), std::move(message)); }
  void add_nowhere(std::string message) { add(Source::Location{}, std::move(message)); }
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

// Operators as functions.
namespace op {
inline constexpr std::string_view kConditional = "_?_:_", kAnd = "_&&_", kOr = "_||_", kNot = "!_", kNegate = "-_",
                                  kEquals = "_==_", kNotEquals = "_!=_", kLess = "_<_", kLessEquals = "_<=_",
                                  kGreater = "_>_", kGreaterEquals = "_>=_", kIn = "@in", kAdd = "_+_",
                                  kSubtract = "_-_", kMultiply = "_*_", kDivide = "_/_", kModulo = "_%_",
                                  kIndex = "_[_]", kOptSelect = "_?._", kOptIndex = "_[?_]",
                                  kNotStrictlyFalse = "@not_strictly_false";
}  // namespace op
inline constexpr std::string_view kAccumulator = "@result";

// Null when there were errors (written to `issues`).
Expr* parse(Arena& arena, const Source& source, Issues& issues, bool binds);

// Types of all nodes, references and overloads; false when there were errors.
bool check(const Environment::State& environment, Arena& arena, Expr* root, Issues& issues);
// What cel-go's validators look at after the check: literals of times and patterns, mixed literals, formats.
void validate(Arena& arena, const Expr* root, Issues& issues);
// What evaluating a checked expression may cost.
CostEstimate estimate_cost(const Environment::State& environment, Arena& arena, Expr* root);

}  // namespace holdfast::cel
