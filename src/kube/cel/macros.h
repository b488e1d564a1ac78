// Macros: calls that the parser replaces with other expressions. Private to the module.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/ast.h"

namespace holdfast::cel {

class ExprFactory {
 public:
  // `binds`: enables cel.bind().
  ExprFactory(Arena& arena, bool binds) : arena_(arena), binds_(binds) {}
  bool binds() const { return binds_; }

  // optMap() copies its target, so a chain of them grows exponentially: expressions with more nodes are rejected.
  static constexpr size_t kMaxNodes = 500'000;
  bool too_large() const { return nodes_ > kMaxNodes; }

  Expr* make(ExprKind kind, int32_t offset) {
    ++nodes_;
    Expr* e = arena_.make<Expr>();
    e->kind = kind;
    e->offset = offset;
    return e;
  }
  Expr* literal(int32_t offset, Val value) {
    Expr* e = make(ExprKind::Literal, offset);
    e->literal = value;
    return e;
  }
  Expr* ident(int32_t offset, std::string_view name) {
    Expr* e = make(ExprKind::Ident, offset);
    e->name = name;
    return e;
  }
  Expr* select(int32_t offset, Expr* operand, std::string_view field) {
    Expr* e = make(ExprKind::Select, offset);
    e->operand = operand;
    e->name = field;
    return e;
  }
  Expr* call(int32_t offset, std::string_view function, std::span<Expr* const> args) {
    Expr* e = make(ExprKind::Call, offset);
    e->name = function;
    e->args = arena_.copy(args);
    return e;
  }
  Expr* call(int32_t offset, std::string_view function, std::initializer_list<Expr*> args) {
    return call(offset, function, std::span<Expr* const>(args.begin(), args.size()));
  }
  Expr* member_call(int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args) {
    Expr* e = call(offset, function, args);
    e->member = true;
    e->operand = target;
    return e;
  }
  Expr* list(int32_t offset, std::span<Expr* const> elements) {
    Expr* e = make(ExprKind::List, offset);
    e->args = arena_.copy(elements);
    return e;
  }
  // A deep copy, because the checker writes to nodes.
  Expr* copy(const Expr* e);
  Arena& arena() { return arena_; }

 private:
  Arena& arena_;
  const bool binds_;
  size_t nodes_ = 0;
};

struct MacroResult {
  Expr* expr = nullptr;  // Null if the call is not a macro.
  std::string error = {};
  int32_t error_offset = 0;
};
MacroResult expand_macro(ExprFactory& factory, int32_t offset, std::string_view function, Expr* target,
                         const std::vector<Expr*>& args);

}  // namespace holdfast::cel
