// How a kind declares its behaviour, and the helpers for that. Private to the module.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kinds.h"
#include "kinds/texts.h"

namespace holdfast::kinds {

// Which changes increment metadata.generation.
enum class Generation : uint8_t {
  None,  // The kind has no generation; a value sent on create is kept.
  Spec,
  SpecAsSent,         // ResourceSlice: before disabled fields are dropped.
  SpecOrAnnotations,  // Deployment.
  Template,           // PodTemplate.
  AllButMetadata,     // EndpointSlice: everything outside metadata, and labels.
  Webhooks,
  Never,         // Starts at 1 and never changes.
  SpecFromZero,  // CSIDriver: incremented, but starts with the value sent.
};

// What a write to /status may change besides the status.
enum class StatusMetadata : uint8_t {
  Honoured,               // Labels, annotations, finalizers and owners as sent.
  KeepLabels,             // Deployment: labels are kept.
  KeepOwners,             // Pod.
  KeepObject,             // Keeps labels, annotations, finalizers and owners.
  KeepObjectAndDeletion,  // Also keeps whether the object is being deleted.
  KeepAll,                // Keeps everything but managedFields.
};

// How often a kind's own validation repeats the validation of the metadata: the whole of it as on create, and the
// comparison with the old one. Each repetition duplicates the causes.
struct MetadataChecks {
  uint8_t whole = 0;
  uint8_t compared = 1;
  bool compares_first = false;
};

inline std::vector<std::string> name_is_anything(std::string_view, bool) { return {}; }

// The functions of one kind; null ones do nothing. The caller handles metadata, status and generation.
struct Hooks {
  NameRule name = name_is_dns_subdomain;
  // Instead of `name`, where the rest of the object decides which name is valid (APIService).
  std::vector<std::string> (*name_in)(const Value& object, std::string_view name) = nullptr;
  Generation generation = Generation::None;
  StatusMetadata status_metadata = StatusMetadata::Honoured;
  MetadataChecks update_checks, status_checks;
  // Event: the kind validates the metadata itself; the generic validation runs only if there are no other errors.
  bool checks_metadata_last = false;

  void (*defaults)(Arena& arena, const types::Resource& resource, Draft::Node object) = nullptr;
  void (*create)(Context& context, Draft::Node object) = nullptr;
  void (*update)(Context& context, Draft::Node next, const Value& old) = nullptr;
  void (*update_status)(Context& context, Draft::Node next, const Value& old) = nullptr;
  // Endpoints other than Main and Status; `next` is as sent.
  void (*update_other)(Context& context, Endpoint endpoint, Draft::Node next, const Value& old) = nullptr;

  void (*validate)(Context& context, const Value& object, FieldErrors& errors) = nullptr;
  // If null, an update is validated like a create.
  void (*validate_update)(Context& context, const Value& next, const Value& old, FieldErrors& errors) = nullptr;
  void (*validate_status)(Context& context, const Value& next, const Value& old, FieldErrors& errors) = nullptr;
  void (*validate_other)(Context& context, Endpoint endpoint, const Value& next, const Value& old,
                         FieldErrors& errors) = nullptr;
  void (*warn)(Context& context, const Value& object, const Value* old, Warnings& texts) = nullptr;
  void (*warn_status)(const Value& object, Warnings& texts) = nullptr;
};

// --- Reading ---

// The member, or a null Value if it is absent, so that lookups can be chained without checks.
const Value& sub(const Value& object, std::string_view key);
template <class... Keys>
const Value& sub(const Value& object, std::string_view key, Keys... rest) {
  return sub(sub(object, key), rest...);
}
bool is_true(const Value& object, std::string_view key);
inline bool is_set(const Value& object, std::string_view key) { return !sub(object, key).is_null(); }
// Absent, null, or an empty list, map or string.
bool is_empty(const Value* value);
inline bool is_empty(const Value& object, std::string_view key) { return is_empty(object.find(key)); }
bool contains(std::span<const std::string_view> texts, std::string_view text);
bool contains_text(std::span<const Value> items, std::string_view text);

// --- Changing ---

// Sets the member to its value in `old`, or removes it if absent there.
void restore(Draft::Node next, const Value& old, std::string_view key);
// An instant in the format of metav1.Time.
Value time_value(Arena& arena, UnixTime time);
// Go prints a nil slice or map as null in a field without omitempty, and omits it with omitempty.
void remove_if_empty(Draft::Node object, std::string_view key);

// --- Checking ---

// A finalizer without a slash must be one of Kubernetes' own.
void validate_finalizer_is_known(std::string_view finalizer, const Path& at, FieldErrors& errors);
// Each of metadata.finalizers.
void validate_finalizers_are_known(const Value& metadata, const Path& at, FieldErrors& errors);

void validate_enum(const Value& object, std::string_view key, std::span<const std::string_view> values, const Path& at,
                   FieldErrors& errors);
inline void validate_enum(const Value& object, std::string_view key, std::initializer_list<std::string_view> values,
                          const Path& at, FieldErrors& errors) {
  validate_enum(object, key, std::span(values.begin(), values.size()), at, errors);
}
// The integer member must not be negative; absent counts as 0.
void validate_non_negative(const Value& object, std::string_view key, const Path& at, FieldErrors& errors);
// Whether the member is semantically unchanged; otherwise validate_immutable reports "field is immutable".
bool unchanged(const types::Type& parent, const Value& next, const Value& old, std::string_view key);
void validate_immutable(const types::Type& parent, const Value& next, const Value& old, std::string_view key,
                        const Path& at, FieldErrors& errors);
// metav1.Condition lists.
void validate_conditions(std::span<const Value> conditions, const Path& at, FieldErrors& errors);

// The type of a member of a struct type, found by name.
const types::Type& member_type(const types::Type& type, std::string_view name);
const types::Type& type_named(std::string_view name);

// A LabelSelector as printed by Go in errors.
Shown shown_selector(const Value* selector);
// A map of strings as printed by Go: sorted by key.
Shown shown_sorted(const Value* map);

}  // namespace holdfast::kinds
