// How one kind states its behaviour, and what all of them use to do so. Private to the module.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kinds.h"
#include "kinds/texts.h"

namespace holdfast::kinds {

// What a change of counts metadata.generation up.
enum class Generation : uint8_t {
  None,  // The kind has none; what a client sends at create stays.
  Spec,
  SpecAsSent,         // ResourceSlice: before anything is taken out of it.
  SpecOrAnnotations,  // Deployment.
  Template,           // PodTemplate.
  AllButMetadata,     // EndpointSlice: everything outside metadata, and labels.
  Webhooks,
  Never,         // Starts at 1 and stays.
  SpecFromZero,  // CSIDriver: counts, but starts as it was sent.
};

// What a write to /status may change beside the status.
enum class StatusMetadata : uint8_t {
  Honoured,               // Labels, annotations, finalizers and owners as sent.
  KeepLabels,             // Deployment: labels stay as they were.
  KeepOwners,             // Pod.
  KeepObject,             // Labels, annotations, finalizers, owners stay.
  KeepObjectAndDeletion,  // And whether it is being deleted.
  KeepAll,                // Everything but managedFields stays.
};

// How often a kind's own validation looks at the metadata that was examined before it: as that of a create does, and
// compared with the old one. Each time gives one more cause.
struct MetadataChecks {
  uint8_t whole = 0;
  uint8_t compared = 1;
};

// One kind's functions; those it leaves out do nothing. Metadata, status and generation are done by the caller.
struct Hooks {
  NameRule name = name_is_dns_subdomain;
  Generation generation = Generation::None;
  StatusMetadata status_metadata = StatusMetadata::Honoured;
  MetadataChecks update_checks, status_checks;
  // Event: the kind's validation looks after the metadata, or no one does until everything else is right.
  bool checks_metadata_last = false;

  void (*defaults)(Arena& arena, const types::Resource& resource, Draft::Node object) = nullptr;
  void (*create)(Context& context, Draft::Node object) = nullptr;
  void (*update)(Context& context, Draft::Node next, const Value& old) = nullptr;
  void (*update_status)(Context& context, Draft::Node next, const Value& old) = nullptr;
  // Endpoints other than Main and Status; `next` is as sent.
  void (*update_other)(Context& context, Endpoint endpoint, Draft::Node next, const Value& old) = nullptr;

  void (*validate)(Context& context, const Value& object, FieldErrors& errors) = nullptr;
  // Without one, an update is validated as a create.
  void (*validate_update)(Context& context, const Value& next, const Value& old, FieldErrors& errors) = nullptr;
  void (*validate_status)(Context& context, const Value& next, const Value& old, FieldErrors& errors) = nullptr;
  void (*validate_other)(Context& context, Endpoint endpoint, const Value& next, const Value& old,
                         FieldErrors& errors) = nullptr;
  void (*warn)(Context& context, const Value& object, const Value* old, std::vector<std::string>& texts) = nullptr;
  void (*warn_status)(const Value& object, std::vector<std::string>& texts) = nullptr;
};

// --- Reading ---

// The member, or a null Value when it is absent: reading continues without a check.
const Value& sub(const Value& object, std::string_view key);
template <class... Keys>
const Value& sub(const Value& object, std::string_view key, Keys... rest) {
  return sub(sub(object, key), rest...);
}
bool is_true(const Value& object, std::string_view key);
inline bool is_set(const Value& object, std::string_view key) { return !sub(object, key).is_null(); }
// Absent, null, or an empty list, map or text.
bool is_empty(const Value* value);
inline bool is_empty(const Value& object, std::string_view key) { return is_empty(object.find(key)); }
bool contains(std::span<const std::string_view> texts, std::string_view text);
bool contains_text(std::span<const Value> items, std::string_view text);

// --- Changing ---

// Makes the member what it was in `old`: there, or absent.
void restore(Draft::Node next, const Value& old, std::string_view key);
// An instant as metav1.Time prints it.
Value time_value(Arena& arena, UnixTime time);
// Go's nil slice or map in a field without omitempty prints null; with omitempty it is absent.
void remove_if_empty(Draft::Node object, std::string_view key);

// --- Checking ---

// A finalizer without a slash is one of Kubernetes' own.
void validate_finalizer_is_known(std::string_view finalizer, const Path& at, FieldErrors& errors);
// Each of metadata.finalizers.
void validate_finalizers_are_known(const Value& metadata, const Path& at, FieldErrors& errors);

void validate_enum(const Value& object, std::string_view key, std::span<const std::string_view> values, const Path& at,
                   FieldErrors& errors);
inline void validate_enum(const Value& object, std::string_view key, std::initializer_list<std::string_view> values,
                          const Path& at, FieldErrors& errors) {
  validate_enum(object, key, std::span(values.begin(), values.size()), at, errors);
}
// The integer member, absent counting as 0 where `absent_is_zero`, must not be negative.
void validate_non_negative(const Value& object, std::string_view key, const Path& at, FieldErrors& errors);
// Semantically unchanged, or "field is immutable" at `at`.
bool unchanged(const types::Type& parent, const Value& next, const Value& old, std::string_view key);
void validate_immutable(const types::Type& parent, const Value& next, const Value& old, std::string_view key,
                        const Path& at, FieldErrors& errors);
// metav1.Condition lists.
void validate_conditions(std::span<const Value> conditions, const Path& at, FieldErrors& errors);

// The type of a member of a struct type, found by name.
const types::Type& member_type(const types::Type& type, std::string_view name);
const types::Type& type_named(std::string_view name);

// A LabelSelector as Go prints it in errors.
Shown shown_selector(const Value* selector);
// A map of strings as Go prints it: keys in order.
Shown shown_sorted(const Value* map);

}  // namespace holdfast::kinds
