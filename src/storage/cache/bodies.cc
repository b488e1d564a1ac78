#include "cache/bodies.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "codec/codec.h"

namespace holdfast::cache {

namespace {
void add(std::atomic<uint64_t>& counter, uint64_t n) { counter.fetch_add(n, std::memory_order_relaxed); }
void sub(std::atomic<uint64_t>& counter, uint64_t n) { counter.fetch_sub(n, std::memory_order_relaxed); }

void* allocate_bytes(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// --- Labels ---------------------------------------------------------------------------------------------------------

// Sorted by key; followed by the end offsets of all strings, keys and values alternating, then the strings.
struct LabelSet {
  std::atomic<uint32_t> users;
  uint32_t count;
  uint64_t hash;
  uint32_t bytes;  // After this header.

  const uint32_t* ends() const { return reinterpret_cast<const uint32_t*>(this + 1); }
  const char* texts() const { return reinterpret_cast<const char*>(ends() + 2 * count); }
  std::string_view text(size_t i) const {
    const uint32_t from = i == 0 ? 0 : ends()[i - 1];
    return {texts() + from, ends()[i] - from};
  }
  std::string_view key(size_t i) const { return text(2 * i); }
  std::string_view value(size_t i) const { return text(2 * i + 1); }
  std::string_view content() const { return {reinterpret_cast<const char*>(this + 1), bytes}; }
};

std::optional<std::string_view> find_label(const LabelSet* labels, std::string_view key) {
  if (labels == nullptr) return std::nullopt;
  for (uint32_t i = 0; i < labels->count; ++i) {
    if (labels->key(i) == key) return labels->value(i);
  }
  return std::nullopt;
}
void for_each_label(const LabelSet* labels, const std::function<void(std::string_view, std::string_view)>& visit) {
  for (uint32_t i = 0; labels != nullptr && i < labels->count; ++i) visit(labels->key(i), labels->value(i));
}
std::optional<std::string_view> Entry::label(std::string_view key) const { return find_label(labels_, key); }

const LabelSet* Bodies::intern_labels(std::vector<std::pair<std::string_view, std::string_view>> labels) {
  if (labels.empty()) return nullptr;
  std::sort(labels.begin(), labels.end());
  thread_local std::string content;
  content.clear();
  uint32_t end = 0;
  const auto put_end = [&end](std::string_view text) {
    end += static_cast<uint32_t>(text.size());
    content.append(reinterpret_cast<const char*>(&end), sizeof(end));
  };
  for (const auto& [key, value] : labels) {
    put_end(key);
    put_end(value);
  }
  for (const auto& [key, value] : labels) content.append(key).append(value);

  const uint64_t hash = hash_key(content);
  std::lock_guard lock(labels_mutex_);
  const auto [first, last] = labels_.equal_range(hash);
  for (auto found = first; found != last; ++found) {
    if (found->second->content() != content || found->second->count != labels.size()) continue;
    found->second->users.fetch_add(1, std::memory_order_relaxed);
    return found->second;
  }
  auto* made =
      new (allocate_bytes(sizeof(LabelSet) + content.size())) LabelSet{.users = 1,
                                                                       .count = static_cast<uint32_t>(labels.size()),
                                                                       .hash = hash,
                                                                       .bytes = static_cast<uint32_t>(content.size())};
  std::memcpy(reinterpret_cast<char*>(made + 1), content.data(), content.size());
  labels_.emplace(hash, made);
  add(label_bytes_, sizeof(LabelSet) + content.size());
  return made;
}

void Bodies::drop_labels(const LabelSet* labels) {
  if (labels == nullptr) return;
  auto& users = const_cast<LabelSet*>(labels)->users;
  // The last reference is released under the lock that protects lookups.
  uint32_t n = users.load(std::memory_order_relaxed);
  while (n > 1) {
    if (users.compare_exchange_weak(n, n - 1, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  std::lock_guard lock(labels_mutex_);
  if (users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto [first, last] = labels_.equal_range(labels->hash);
  labels_.erase(std::find_if(first, last, [labels](const auto& item) { return item.second == labels; }));
  sub(label_bytes_, sizeof(LabelSet) + labels->bytes);
  const_cast<LabelSet*>(labels)->~LabelSet();
  std::free(const_cast<LabelSet*>(labels));
}

// --- Packed bodies --------------------------------------------------------------------------------------------------

struct Bodies::SharedDictionary {
  std::shared_ptr<const Dictionary> dictionary;
  std::atomic<uint64_t> users{1};
};

// Followed by the bytes. Reference counted, because a reader may be unpacking it while it is replaced.
struct Packed {
  Bodies::SharedDictionary* shelf;  // Null if the bytes are plain, because packing did not help.
  std::atomic<uint32_t> users;
  uint32_t bytes;
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
};
static_assert(sizeof(Packed) == 16);

Packed* Bodies::new_packed(SharedDictionary* shelf, std::string_view bytes) {
  auto* packed = new (allocate_bytes(sizeof(Packed) + bytes.size()))
      Packed{.shelf = shelf, .users = 1, .bytes = static_cast<uint32_t>(bytes.size())};
  std::memcpy(reinterpret_cast<char*>(packed + 1), bytes.data(), bytes.size());
  return packed;
}

void Bodies::drop_packed(Packed* packed) {
  if (packed == nullptr || packed->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  sub(packed_bytes_, sizeof(Packed) + packed->bytes);
  if (packed->shelf != nullptr) release_dictionary(packed->shelf);
  packed->~Packed();
  std::free(packed);
}

void Bodies::release_dictionary(SharedDictionary* shelf) {
  if (shelf->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  sub(dictionary_bytes_, shelf->dictionary->bytes());
  delete shelf;
}

Bodies::SharedDictionary* Bodies::hold_dictionary() const {
  std::lock_guard lock(dictionary_mutex_);
  SharedDictionary* shelf = dictionary();
  if (shelf != nullptr) shelf->users.fetch_add(1, std::memory_order_relaxed);
  return shelf;
}

// Null if there is no dictionary yet.
Packed* Bodies::pack(std::string_view plain) {
  SharedDictionary* shelf = hold_dictionary();
  if (shelf == nullptr) return nullptr;
  packs_.fetch_add(1, std::memory_order_relaxed);
  const std::string_view bytes = shelf->dictionary->pack(plain);
  Packed* packed;
  if (bytes.empty()) {
    release_dictionary(shelf);
    packed = new_packed(nullptr, plain);
  } else {
    packed = new_packed(shelf, bytes);
  }
  add(packed_bytes_, sizeof(Packed) + packed->bytes);
  return packed;
}

// --- Entries --------------------------------------------------------------------------------------------------------

namespace {
const uint32_t* field_ends(const Entry* entry) { return reinterpret_cast<const uint32_t*>(entry + 1); }
}  // namespace

std::string_view Entry::key() const {
  return {reinterpret_cast<const char*>(field_ends(this) + field_count_), key_bytes_};
}
std::string_view Entry::uid() const { return {key().data() + key_bytes_, uid_bytes_}; }
std::string_view Entry::field(size_t position) const {
  if (position >= field_count_) return {};
  const uint32_t from = position == 0 ? 0 : field_ends(this)[position - 1];
  return {key().data() + key_bytes_ + uid_bytes_ + from, field_ends(this)[position] - from};
}
std::string_view Entry::namespace_name() const {
  if (!bodies_->namespaced_) return {};
  const std::string_view all = key();
  const size_t slash = all.find('/');
  return slash == std::string_view::npos ? std::string_view{} : all.substr(0, slash);
}
std::string_view Entry::name() const {
  const std::string_view all = key();
  if (!bodies_->namespaced_) return all;
  const size_t slash = all.find('/');
  return slash == std::string_view::npos ? all : all.substr(slash + 1);
}
ownership::Owners Entry::ownership() const { return {&bodies_->pool_, owners_}; }
Blob Entry::body(Use use) const { return bodies_->body(*this, use); }
void Entry::fetch() const {
  constexpr size_t kLineBytes = 64, kUsualBytes = 256;
  if (const Packed* packed = packed_.load(std::memory_order_relaxed)) {
    const char* const bytes = reinterpret_cast<const char*>(packed);
    for (size_t at = 0; at < kUsualBytes; at += kLineBytes) __builtin_prefetch(bytes + at);
  }
  __builtin_prefetch(owners_);
}
void Entry::destroy(Entry* entry) { entry->bodies_->destroy(entry); }

Bodies::Bodies(ownership::Pool& pool, ownership::Pool::Kind kind, bool namespaced, Limits limits)
    : pool_(pool), kind_(kind), namespaced_(namespaced), limits_(limits) {}

Bodies::~Bodies() {
  if (SharedDictionary* shelf = dictionary()) release_dictionary(shelf);
}

void Bodies::release() {
  {
    // Hot entries hold references, too.
    std::deque<EntryRef> gone;
    std::lock_guard lock(queue_mutex_);
    closed_ = true;
    gone.swap(queue_);
    plain_queue_bytes_.store(0, std::memory_order_relaxed);
    // `gone` is destroyed after the lock is released.
  }
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Entry* Bodies::allocate(std::string_view key, std::string_view uid, std::span<const std::string_view> fields,
                        Revision revision) {
  size_t text_bytes = key.size() + uid.size();
  for (std::string_view field : fields) text_bytes += field.size();
  const size_t bytes = sizeof(Entry) + fields.size() * sizeof(uint32_t) + text_bytes;
  auto* entry = new (allocate_bytes(bytes)) Entry;
  entry->revision_ = revision;
  entry->bodies_ = this;
  entry->key_bytes_ = static_cast<uint32_t>(key.size());
  entry->uid_bytes_ = static_cast<uint32_t>(uid.size());
  entry->field_count_ = static_cast<uint16_t>(fields.size());
  auto* ends = reinterpret_cast<uint32_t*>(entry + 1);
  uint32_t end = 0;
  for (size_t i = 0; i < fields.size(); ++i) ends[i] = end += static_cast<uint32_t>(fields[i].size());
  char* text = reinterpret_cast<char*>(ends + fields.size());
  const auto put = [&text](std::string_view part) {
    if (!part.empty()) std::memcpy(text, part.data(), part.size());
    text += part.size();
  };
  put(key);
  put(uid);
  for (std::string_view field : fields) put(field);
  users_.fetch_add(1, std::memory_order_relaxed);
  add(entry_bytes_, bytes);
  return entry;
}

void Bodies::destroy(Entry* entry) {
  size_t bytes = sizeof(Entry) + entry->field_count_ * sizeof(uint32_t) + entry->key_bytes_ + entry->uid_bytes_;
  if (entry->field_count_ > 0) bytes += field_ends(entry)[entry->field_count_ - 1];
  sub(entry_bytes_, bytes);
  sub(raw_bytes_, entry->body_bytes_);
  set_plain(*entry, nullptr);
  drop_packed(entry->packed_);
  drop_labels(entry->labels_);
  {
    ownership::OwnersRef gone(&pool_, entry->owners_);
  }
  entry->~Entry();
  std::free(entry);
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// Called with the entry's lock held, or by its only owner.
void Bodies::set_plain(const Entry& entry, Blob plain) {
  if (entry.plain_ != nullptr) sub(plain_bytes_, entry.plain_->size());
  if (plain != nullptr) add(plain_bytes_, plain->size());
  entry.plain_ = std::move(plain);
}

namespace {
uint32_t joined_bytes(std::string_view body, const ownership::Owners& owners) {
  if (!codec::is_protobuf(body)) return 0;
  const Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(body);
  return envelope ? static_cast<uint32_t>(codec::joined_bytes(envelope->message, owners.protobuf_bytes())) : 0;
}
}  // namespace

EntryRef Bodies::make(std::string_view key, Revision revision, Decoded decoded, Begin begin) {
  Entry* entry = allocate(key, decoded.uid, decoded.fields, revision);
  EntryRef ref = EntryRef::adopt(entry);
  entry->labels_ = intern_labels(std::move(decoded.labels));
  entry->owners_ = pool_.intern(kind_, decoded.managed).release();
  entry->body_bytes_ = static_cast<uint32_t>(decoded.body.size());
  entry->joined_bytes_ = joined_bytes(decoded.body, entry->ownership());
  add(raw_bytes_, entry->body_bytes_);
  if (begin == Begin::Cold && limits_.compress) entry->packed_ = pack(decoded.body);
  if (entry->packed_ == nullptr) {
    set_plain(*entry, store::make_blob(std::move(decoded.body)));
    enqueue(ref);
  }
  return ref;
}

EntryRef Bodies::make_like(const Entry& other, Revision revision, std::string body) {
  std::vector<std::string_view> fields;
  fields.reserve(other.field_count_);
  for (size_t i = 0; i < other.field_count_; ++i) fields.push_back(other.field(i));
  Entry* entry = allocate(other.key(), other.uid(), fields, revision);
  EntryRef ref = EntryRef::adopt(entry);
  if (other.labels_ != nullptr) const_cast<LabelSet*>(other.labels_)->users.fetch_add(1, std::memory_order_relaxed);
  entry->labels_ = other.labels_;
  ownership::OwnersRef theirs(&pool_, other.owners_);
  entry->owners_ = theirs.share().release();
  theirs.release();
  entry->body_bytes_ = static_cast<uint32_t>(body.size());
  entry->joined_bytes_ = joined_bytes(body, entry->ownership());
  add(raw_bytes_, entry->body_bytes_);
  set_plain(*entry, store::make_blob(std::move(body)));
  enqueue(ref);
  return ref;
}

void Bodies::enqueue(const EntryRef& entry) {
  if (!limits_.compress) return;
  std::lock_guard lock(queue_mutex_);
  if (closed_) return;
  queue_.push_back(entry);
  add(plain_queue_bytes_, entry->body_bytes());
}

Bodies::StoredBody Bodies::stored_body(const Entry& entry, std::mutex& mutex) {
  std::lock_guard lock(mutex);
  if (entry.plain_ != nullptr) return {entry.plain_};
  Packed* const packed = entry.packed_;
  packed->users.fetch_add(1, std::memory_order_relaxed);
  return {nullptr, packed};
}

void Bodies::unpack(const Entry& entry, Packed* packed, char* out) {
  const std::string_view bytes(packed->data(), packed->bytes);
  if (packed->shelf == nullptr) {
    std::memcpy(out, bytes.data(), bytes.size());
  } else {
    const bool unpacked = packed->shelf->dictionary->unpack(bytes, out, entry.body_bytes_);
    assert(unpacked);
    (void)unpacked;
    add(unpacked_, 1);
  }
  drop_packed(packed);
}

std::string_view BodyReader::read(const Entry& entry) { return entry.bodies_->body(entry, *this); }

std::string_view Bodies::body(const Entry& entry, BodyReader& reader) {
  StoredBody found = stored_body(entry, lock_of(entry));
  reader.plain_ = std::move(found.plain);
  if (reader.plain_ != nullptr) return *reader.plain_;
  if (reader.memory_bytes_ < entry.body_bytes_) {
    reader.memory_bytes_ = std::max<size_t>(entry.body_bytes_, 2 * reader.memory_bytes_);
    reader.memory_ = std::make_unique_for_overwrite<char[]>(reader.memory_bytes_);
  }
  unpack(entry, found.packed, reader.memory_.get());
  return {reader.memory_.get(), entry.body_bytes_};
}

Blob Bodies::body(const Entry& entry, Entry::Use use) {
  StoredBody found = stored_body(entry, lock_of(entry));
  if (found.plain != nullptr) {
    if (use == Entry::Use::Hot) entry.used_.store(true, std::memory_order_relaxed);
    return std::move(found.plain);
  }
  auto plain = std::make_shared<std::string>();
  plain->resize(entry.body_bytes_);
  unpack(entry, found.packed, plain->data());
  if (use == Entry::Use::Hot) {
    bool kept = false;
    {
      std::lock_guard lock(lock_of(entry));
      if (entry.plain_ == nullptr) {
        set_plain(entry, plain);
        kept = true;
      }
    }
    if (kept) {
      enqueue(EntryRef::share(entry));
      pack_cold();
    }
  }
  return plain;
}

void Bodies::pack_cold() {
  if (!limits_.compress) return;
  while (over_budget() && has_dictionary()) {
    EntryRef oldest;
    {
      std::lock_guard lock(queue_mutex_);
      if (queue_.empty()) return;
      oldest = std::move(queue_.front());
      queue_.pop_front();
      if (oldest->used_.exchange(false, std::memory_order_relaxed)) {
        queue_.push_back(std::move(oldest));
        continue;
      }
    }
    sub(plain_queue_bytes_, oldest->body_bytes());
    // The last reference: the entry is about to be freed.
    if (oldest->references_.load(std::memory_order_acquire) == 1) continue;
    Blob plain;
    bool is_packed;
    {
      std::lock_guard lock(lock_of(*oldest));
      plain = oldest->plain_;
      is_packed = oldest->packed_ != nullptr;
    }
    Packed* packed = is_packed ? nullptr : pack(*plain);
    std::lock_guard lock(lock_of(*oldest));
    if (packed != nullptr) oldest->packed_ = packed;
    if (oldest->packed_ != nullptr) set_plain(*oldest, nullptr);
  }
}

void Bodies::release_unreferenced() {
  std::vector<EntryRef> gone;  // Destroyed after the lock is released.
  std::lock_guard lock(queue_mutex_);
  std::erase_if(queue_, [&](EntryRef& entry) {
    if (entry->references_.load(std::memory_order_acquire) != 1) return false;
    sub(plain_queue_bytes_, entry->body_bytes());
    gone.push_back(std::move(entry));
    return true;
  });
}

// --- Dictionaries ---------------------------------------------------------------------------------------------------

bool Bodies::learn(const std::vector<Blob>& samples) {
  packs_.store(0, std::memory_order_relaxed);
  std::vector<std::string_view> views;
  views.reserve(samples.size());
  for (const Blob& sample : samples) views.push_back(*sample);
  auto trained = Dictionary::train(views, limits_.dictionary_bytes);
  if (trained == nullptr) return false;
  if (SharedDictionary* old = hold_dictionary()) {
    uint64_t plain = 1, packed = 1;
    for (std::string_view sample : views) {
      plain += sample.size();
      packed += old->dictionary->packed_bytes(sample);
    }
    release_dictionary(old);
    const double old_ratio = static_cast<double>(packed) / static_cast<double>(plain);
    if (trained->expected_ratio() > 0.85 * old_ratio) return false;
  }
  add(dictionary_bytes_, trained->bytes());
  add(trained_, 1);
  auto* shelf = new SharedDictionary;
  shelf->dictionary = std::move(trained);
  SharedDictionary* old;
  {
    std::lock_guard lock(dictionary_mutex_);
    old = dictionary_.exchange(shelf, std::memory_order_acq_rel);
  }
  if (old != nullptr) release_dictionary(old);
  return true;
}

void Bodies::repack(const Entry& entry) {
  Packed* old;
  {
    std::lock_guard lock(lock_of(entry));
    old = entry.packed_;
    if (old == nullptr || old->shelf == dictionary()) return;
  }
  const Blob plain = body(entry, Entry::Use::Once);
  Packed* packed = pack(*plain);
  if (packed == nullptr) return;
  {
    std::lock_guard lock(lock_of(entry));
    packed = entry.packed_.exchange(packed);
  }
  drop_packed(packed);
}

void Bodies::usage(Usage& usage) const {
  usage.entry_bytes = entry_bytes_.load(std::memory_order_relaxed);
  usage.body_raw_bytes = raw_bytes_.load(std::memory_order_relaxed);
  usage.body_plain_bytes = plain_bytes_.load(std::memory_order_relaxed);
  usage.body_packed_bytes = packed_bytes_.load(std::memory_order_relaxed);
  usage.dictionary_bytes = dictionary_bytes_.load(std::memory_order_relaxed);
  usage.label_bytes = label_bytes_.load(std::memory_order_relaxed);
  std::lock_guard lock(labels_mutex_);
  usage.label_bytes += labels_.bucket_count() * sizeof(void*) + labels_.size() * 32;
}

}  // namespace holdfast::cache
