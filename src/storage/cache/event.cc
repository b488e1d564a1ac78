#include "cache/event.h"

namespace holdfast::cache {

EntryRef Event::gone(Bodies& bodies, const Codec& codec) const {
  std::lock_guard lock(mutex_);
  if (!gone_) gone_ = bodies.make_like(*previous, revision, codec.with_revision(*previous->body(), revision));
  return gone_;
}

Blob Event::render(EventType as, std::string_view form, const std::function<std::string()>& make) const {
  std::lock_guard lock(mutex_);
  for (const Rendering& rendering : renderings_) {
    if (rendering.as != as || rendering.form != form) continue;
    counts_->hits.fetch_add(1, std::memory_order_relaxed);
    return rendering.bytes;
  }
  Blob bytes = store::make_blob(make());
  counts_->renders.fetch_add(1, std::memory_order_relaxed);
  counts_->bytes.fetch_add(bytes->size() + form.size(), std::memory_order_relaxed);
  renderings_.push_back({as, std::string(form), bytes});
  return bytes;
}

void Event::forget_renderings() const {
  std::lock_guard lock(mutex_);
  for (const Rendering& rendering : renderings_) {
    counts_->bytes.fetch_sub(rendering.bytes->size() + rendering.form.size(), std::memory_order_relaxed);
  }
  renderings_.clear();
}

const EntryRef& Delivery::object() const { return object_ || event_ == nullptr ? object_ : event_->object; }

Blob Delivery::render(std::string_view form, const std::function<std::string(const Delivery&)>& make) const {
  if (event_ == nullptr) return store::make_blob(make(*this));
  SharedRenderings* const here = SharedRenderings::current;
  if (here != nullptr) {
    if (const Blob* known = here->find(*event_, type, form)) return *known;
  }
  const Blob bytes = event_->render(type, form, [&] { return make(*this); });
  return here == nullptr ? bytes : here->keep(event_, type, form, bytes);
}

thread_local constinit SharedRenderings* SharedRenderings::current = nullptr;

SharedRenderings::~SharedRenderings() {
  current = outer_;
  for (const Known& known : known_) {
    if (known.hits != 0) known.event->count_hits(known.hits);
  }
}

const Blob* SharedRenderings::find(const Event& event, EventType as, std::string_view form) {
  for (Known& known : known_) {
    if (known.event.get() != &event || known.as != as || known.form != form) continue;
    ++known.hits;
    return &known.bytes;
  }
  return nullptr;
}

const Blob& SharedRenderings::keep(std::shared_ptr<const Event> event, EventType as, std::string_view form,
                                   const Blob& bytes) {
  Known& known = known_[next_++ % kForms];
  if (known.hits != 0) known.event->count_hits(known.hits);
  known = {std::move(event), as, std::string(form), {std::make_shared<Blob>(bytes), bytes.get()}, 0};
  return known.bytes;
}

}  // namespace holdfast::cache
