#include "resource/object_rules.h"

#include "crd/crd.h"

namespace holdfast::resource {
namespace {

class BuiltinRules : public ObjectRules {
 public:
  BuiltinRules(const types::Resource& requested, const types::Resource& stored)
      : requested_(requested), stored_(stored) {}

  Value with_defaults(Arena& arena, const Value& decoded) const override {
    Draft draft(arena, decoded);
    kinds::set_defaults(arena, requested_, draft.root());
    if (&requested_ == &stored_) return draft.value();
    return kinds::convert(arena, stored_, requested_, kinds::convert(arena, requested_, stored_, draft.value()));
  }
  Result<Value> convert(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object,
                        MissingConversions*) const override {
    return &from == &to ? object : kinds::convert(arena, from, to, object);
  }
  void prepare_for_create(kinds::Context& context, Draft::Node object) const override {
    kinds::prepare_for_create(context, object);
  }
  void prepare_for_update(kinds::Context& context, kinds::Endpoint endpoint, Draft::Node next,
                          const Value& old) const override {
    kinds::prepare_for_update(context, endpoint, next, old);
  }
  Result<Unit> validate_create(kinds::Context& context, const Value& object) const override {
    return kinds::validate_create(context, object);
  }
  Result<Unit> validate_update(kinds::Context& context, kinds::Endpoint endpoint, const Value& next,
                               const Value& old) const override {
    return kinds::validate_update(context, endpoint, next, old);
  }
  void add_warnings(kinds::Context& context, kinds::Endpoint endpoint, const Value& object, const Value* old,
                    Warnings& warnings) const override {
    kinds::add_warnings(context, object, old, endpoint, warnings);
  }
  bool same(const Value& a, const Value& b) const override { return kinds::semantic_equal(*stored_.type, &a, &b); }
  std::string_view deprecation_warning() const override { return kinds::deprecation_warning(requested_); }

 private:
  const types::Resource& requested_;
  const types::Resource& stored_;
};

// A definition is a built-in kind with additional schema validation.
class DefinitionRules final : public BuiltinRules {
 public:
  using BuiltinRules::BuiltinRules;

  Result<Unit> validate_create(kinds::Context&, const Value& object) const override {
    return crd::validate_definition(object, nullptr);
  }
  Result<Unit> validate_update(kinds::Context&, kinds::Endpoint endpoint, const Value& next,
                               const Value& old) const override {
    return endpoint == kinds::Endpoint::Status ? crd::validate_definition_status(next, old)
                                               : crd::validate_definition(next, &old);
  }
  void add_warnings(kinds::Context& context, kinds::Endpoint endpoint, const Value& object, const Value* old,
                    Warnings& warnings) const override {
    BuiltinRules::add_warnings(context, endpoint, object, old, warnings);
    crd::add_definition_warnings(object, old, warnings);
  }
};

}  // namespace

std::shared_ptr<const ObjectRules> builtin_rules(const types::Resource& requested, const types::Resource& stored) {
  if (requested.group == "apiextensions.k8s.io" && requested.plural == "customresourcedefinitions") {
    return std::make_shared<DefinitionRules>(requested, stored);
  }
  return std::make_shared<BuiltinRules>(requested, stored);
}

}  // namespace holdfast::resource
