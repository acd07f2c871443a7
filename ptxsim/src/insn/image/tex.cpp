// tex and tld4 on texture objects (PTX ISA 9.0, "Texture Instructions"). Reads are as those of
// ld.global.nc: texture caches do not follow what the kernel writes. Not modelled: references and
// samplers of their own, depth textures, several samples, results of 16 bits, gradients into
// mipmaps.
#include <fmt/format.h>

#include <cstring>

#include "insn/image/image_operand.hpp"
#include "machine/memory/addresses.hpp"

namespace ptxsim {
namespace {

enum class Levels : uint8_t { kBase, kLevel, kGradient };

struct FetchDetail : Detail {
  ImageOperand image;
  bool by_texel = false;  // integer coordinates
  bool gathers = false;   // tld4
  uint32_t component = 0;
  Levels levels = Levels::kBase;
  Slot level;
  std::array<Slot, 3> offset;
  std::array<Slot, 4> results;
  Slot resident;
};

ReadTexel reader(Execution& x, int lane) {
  return [&x, lane](uint64_t address, uint32_t bytes, std::byte* to) {
    MemoryAt at;
    at.offset = address;
    at.non_coherent = true;
    std::memcpy(to, bytes_to_read(x, at, bytes, AccessKind::kRead, lane), bytes);
    x.machine.stats().l2_read_bytes += bytes;
  };
}

FetchPlace place_of(const Execution& x, const FetchDetail& f, int lane) {
  FetchPlace place;
  place.by_texel = f.by_texel;
  for (uint32_t i = 0; i < f.image.count; ++i) {
    place.at[i] = x.source<float>(f.image.coordinates[i])[lane];
    place.texel[i] = x.source<int32_t>(f.image.coordinates[i])[lane];
  }
  for (uint32_t i = 0; i < 3; ++i)
    if (f.offset[i].present()) place.offset[i] = x.source<int32_t>(f.offset[i])[lane];
  if (f.by_texel && f.level.present()) place.texel_level = x.source<int32_t>(f.level)[lane];
  if (f.image.is_layered()) place.layer = x.source<uint32_t>(f.image.layer)[lane];
  return place;
}

void check(const Execution& x, const FetchDetail& f, const Image& image, int lane) {
  if (image.shape == ImageShape::kLinear && !f.by_texel)
    x.fault("linear memory has integer coordinates alone (tex1Dfetch)", lane);
  if (f.levels == Levels::kGradient && image.levels.size() > 1)
    x.fault(
        "which level of a mipmap gradients take is not modelled: no document says how they are "
        "rounded",
        lane);
}

Outcome execute_fetch(Execution& x, const Insn& insn) {
  const auto& f = static_cast<const FetchDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const Image& image = texture_at(x, f.image, lane);
    check(x, f, image, lane);
    const FetchPlace place = place_of(x, f, lane);
    std::optional<float> level;
    if (f.level.present() && !f.by_texel) level = x.source<float>(f.level)[lane];
    const Texel texel = f.gathers ? gather(image, place, f.component, reader(x, lane))
                                  : fetch(image, place, level, reader(x, lane));
    for (uint32_t i = 0; i < 4; ++i)
      if (f.results[i].present()) x.destination<uint32_t>(f.results[i])[lane] = texel[i];
  });
  x.set_predicate(f.resident, 0xffffffffu);
  return Outcome::kNext;
}

// {d0, d1, d2, d3}, or that and |p, which is whether the texels are in memory: they are.
void take_results(Decode& d, FetchDetail& f) {
  const Operand& operand = d.operand(0);
  const bool pair = operand.kind == Operand::Kind::kPair;
  const Operand& vector = pair ? operand.parts[0] : operand;
  if (vector.kind != Operand::Kind::kVector || vector.parts.size() != 4)
    d.fail("needs a destination of four elements");
  for (size_t i = 0; i < 4; ++i) f.results[i] = d.destination(vector.parts[i], Type::kB32);
  if (pair) f.resident = d.destination(operand.parts[1], Type::kPred);
}

void take_level(Decode& d, FetchDetail& f, size_t& next) {
  if (f.levels == Levels::kLevel) f.level = d.source(next++, f.by_texel ? Type::kS32 : Type::kF32);
  if (f.levels == Levels::kGradient)
    for (int i = 0; i < 2; ++i)
      for (const Operand* element : d.elements(next++)) d.source(*element, Type::kF32);
}

void take_offset(Decode& d, FetchDetail& f, size_t& next) {
  if (next >= d.num_operands()) return;
  if (d.operand(next).kind != Operand::Kind::kVector) d.fail("depth textures are not modelled");
  const auto elements = d.elements(next++);
  if (elements.size() < f.image.count || f.image.geometry >= ImageShape::kCube)
    d.fail("an offset needs an element for each dimension; cubes have none");
  for (uint32_t i = 0; i < f.image.count; ++i) f.offset[i] = d.source(*elements[i], Type::kS32);
}

void take_types(Decode& d, FetchDetail& f) {
  Modifiers& m = d.modifiers();
  if (!m.take("v4")) d.fail("needs .v4; results of 16 bits are not modelled");
  const Type result = m.take_type(), coordinate = m.take_type();
  if (result != Type::kU32 && result != Type::kS32 && result != Type::kF32)
    d.fail(fmt::format("results of type .{} are not modelled", name_of(result)));
  if (coordinate != Type::kF32 && coordinate != Type::kS32)
    d.fail("coordinates have the type .f32 or .s32");
  f.by_texel = coordinate == Type::kS32;
  if (f.by_texel && (f.image.geometry >= ImageShape::kCube || f.gathers))
    d.fail("this geometry needs coordinates of type .f32");
  if (f.by_texel && f.levels == Levels::kGradient)
    d.fail("gradients need coordinates of type .f32");
}

}  // namespace

void decode_tex(Decode& d) {
  auto* f = d.make_detail<FetchDetail>();
  Modifiers& m = d.modifiers();
  f->gathers = d.statement().root == "tld4";
  if (f->gathers) {
    const int component = m.take_one_of({"r", "g", "b", "a"});
    if (component < 0) d.fail("tld4 needs a component: .r .g .b .a");
    f->component = static_cast<uint32_t>(component);
    f->image = take_image_operand(d, 1, {"2d", "a2d", "cube", "acube"});
  } else {
    const int levels = m.take_one_of({"base", "level", "grad"});
    f->levels = levels < 0 ? Levels::kBase : static_cast<Levels>(levels);
    f->image = take_image_operand(d, 1, {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"});
  }
  take_types(d, *f);
  take_results(d, *f);
  size_t next = 2;
  take_level(d, *f, next);
  take_offset(d, *f, next);
  if (next < d.num_operands()) d.fail("depth textures are not modelled");
  d.insn().execute = execute_fetch;
}

}  // namespace ptxsim
