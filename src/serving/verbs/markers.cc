#include "verbs/markers.h"

#include "call/call.h"
#include "custom/conversions.h"

namespace holdfast::verbs {
namespace {

// Adds the path of each {k8s_io__value: unset} in the value. Most objects have none, and some may have very many.
void find_stored_markers(const Value& value, std::string& path, std::vector<std::string>& found) {
  constexpr size_t kShown = 10;
  if (found.size() == kShown) return;
  const size_t length = path.size();
  if (value.is_map()) {
    const Value* said = value.find(ownership::kUnsetKey);
    if (said != nullptr && said->is_string() && said->as_string() == ownership::kUnsetValue) {
      found.push_back(path.empty() ? "." : path);
      return;
    }
    for (const Member& m : value.members()) {
      if (m.value.is_scalar()) continue;
      path += '.';
      path += m.key;
      find_stored_markers(m.value, path, found);
      path.resize(length);
    }
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.count(); ++i) {
      if (value.items()[i].is_scalar()) continue;
      path += '[' + std::to_string(i) + ']';
      find_stored_markers(value.items()[i], path, found);
      path.resize(length);
    }
  }
}

}  // namespace

void count_unset(call::Call& call, const request::WriteOptions& options) {
  if (options.dry_run) return;
  const types::Resource& resource = *call.served->resource;
  call.unset_applies.with({resource.group, resource.version, resource.plural, call.info.subresource}).add();
}

Task<Result<Unit>> report_unset(call::Call& call, const ownership::FieldManager& fields,
                                const request::WriteOptions& options, const UnsetFields& unset,
                                const write::Written& written) {
  if (unset.paths.empty()) co_return Unit{};
  count_unset(call, options);
  Result<Value> object =
      co_await custom::convert_object(call, call.served->object_rules->version_of(written.stored, *call.served->stored),
                                      *call.served->resource, written.stored);
  if (!object) co_return object.take_error();
  fields.restored(call.arena, *object, unset.paths).for_each([&](ownership::Path path) {
    if (call.warnings.full()) return;  // Paths may be long, and there may be many.
    const bool defaulted = unset.defaulted.has(path);
    call.warnings.add(ownership::to_string(path) + " was unset, but " +
                      (defaulted ? "is set again: it has a default" : "the server or admission set it again"));
  });
  co_return Unit{};
}

void warn_about_stored_markers(call::Call& call, std::string_view bytes, const Result<write::Written>& written) {
  if (!written || !call.settings.gates.on(Gate::ServerSideApplyUnsettingFields)) return;
  if (bytes.find(ownership::kUnsetKey) == std::string_view::npos) return;
  std::string path;
  std::vector<std::string> found;
  find_stored_markers(written->stored, path, found);
  for (const std::string& at : found) {
    call.warnings.add(at + " looks like an unset marker, but only apply unsets fields: it was stored as data");
  }
}

}  // namespace holdfast::verbs
