// txq, suq and istypep on texture and surface objects (PTX ISA 9.0, "Texture Instructions: txq",
// "istypep", "Surface Instructions: suq"). The numbers of channel types and orders are the source
// language's, and not modelled.
#include <fmt/format.h>

#include <algorithm>

#include "insn/image/image_operand.hpp"

namespace ptxsim {
namespace {

enum class Query : uint8_t {
  kWidth,
  kHeight,
  kDepth,
  kArraySize,
  kNormalizedCoords,
  kNumMipmapLevels,
  kNumSamples,
  kFilterMode,
  kAddressMode0,
  kAddressMode1,
  kAddressMode2,
  kMemoryLayout,
};

struct QueryDetail : Detail {
  Query query = Query::kWidth;
  bool of_surface = false;
  Slot object, level;
};

uint32_t layers_of(const Image& image) {
  if (!image.is_layered() || image.shape == ImageShape::kCube) return 0;
  return image.levels.front().layers / (image.shape == ImageShape::kCubeLayered ? 6 : 1);
}

// enum { wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border }
uint32_t number_of(AddressMode mode) {
  static constexpr uint32_t kNumbers[] = {0, 3, 1, 4};
  return kNumbers[static_cast<int>(mode)];
}

uint32_t answer(const Image& image, const ImageLevel& level, Query query) {
  switch (query) {
    case Query::kWidth:
    case Query::kHeight:
    case Query::kDepth: {
      const auto dimension = static_cast<uint32_t>(query);
      return dimension < image.dimensions() ? level.extents[dimension] : 0;
    }
    case Query::kArraySize:
      return layers_of(image);
    case Query::kNormalizedCoords:
      return image.sampler.normalized_coordinates;
    case Query::kNumMipmapLevels:
      return image.levels.size() > 1 ? static_cast<uint32_t>(image.levels.size()) : 0;
    case Query::kNumSamples:
      return 0;
    case Query::kFilterMode:
      return image.sampler.filters_linearly;
    case Query::kAddressMode0:
    case Query::kAddressMode1:
    case Query::kAddressMode2:
      return number_of(image.sampler.address[static_cast<size_t>(query) -
                                             static_cast<size_t>(Query::kAddressMode0)]);
    case Query::kMemoryLayout:
      return image.shape == ImageShape::kLinear;
  }
  return 0;
}

Outcome execute_query(Execution& x, const Insn& insn) {
  const auto& q = static_cast<const QueryDetail&>(*insn.detail);
  uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    const Image& image = image_at(x, q.object, lane);
    if (image.is_surface != q.of_surface)
      x.fault(q.of_surface ? "suq of a texture object" : "txq of a surface object", lane);
    const uint32_t level = q.level.present() ? x.source<uint32_t>(q.level)[lane] : 0;
    if (level >= image.levels.size())
      x.fault(fmt::format("txq of level {}; there are {}", level, image.levels.size()), lane);
    d[lane] = answer(image, image.levels[level], q.query);
  });
  return Outcome::kNext;
}

struct TypeDetail : Detail {
  Slot object;
  bool textures = false, surfaces = false;
};

Outcome execute_istypep(Execution& x, const Insn& insn) {
  const auto& t = static_cast<const TypeDetail&>(*insn.detail);
  uint32_t bits = 0;
  x.for_lanes([&](int lane) {
    const Images& images = x.machine.global().images;
    const auto found = images.find(x.source<uint64_t>(t.object)[lane]);
    const bool is = found != images.end() && (found->second.is_surface ? t.surfaces : t.textures);
    bits |= static_cast<uint32_t>(is) << lane;
  });
  x.set_predicate(insn.slot[0], bits);
  return Outcome::kNext;
}

}  // namespace

void decode_image_query(Decode& d) {
  auto* q = d.make_detail<QueryDetail>();
  Modifiers& m = d.modifiers();
  q->of_surface = d.statement().root == "suq";
  for (const char* name : {"channel_data_type", "channel_order", "force_unnormalized_coords"})
    if (m.has(name)) d.fail(fmt::format("the query .{} is not modelled", name));
  const bool of_level = !q->of_surface && m.take("level");
  const int query = m.take_one_of({"width", "height", "depth", "array_size", "normalized_coords",
                                   "num_mipmap_levels", "num_samples", "filter_mode", "addr_mode_0",
                                   "addr_mode_1", "addr_mode_2", "memory_layout"});
  if (query < 0 || !m.take("b32")) d.fail("needs a query, and .b32");
  q->query = static_cast<Query>(query);
  const bool for_surfaces = q->query <= Query::kArraySize || q->query == Query::kMemoryLayout;
  const bool for_textures = q->query != Query::kMemoryLayout;
  if (!(q->of_surface ? for_surfaces : for_textures) || (of_level && q->query > Query::kDepth))
    d.fail("this query does not exist here");
  q->object = take_image_object(d, 1);
  if (of_level) q->level = d.source(2, Type::kB32);
  d.expect_operands(of_level ? 3 : 2, of_level ? 3 : 2);
  d.insn().slot[0] = d.destination(0, Type::kB32);
  d.insn().execute = execute_query;
}

void decode_istypep(Decode& d) {
  auto* t = d.make_detail<TypeDetail>();
  const int type = d.modifiers().take_one_of({"texref", "samplerref", "surfref"});
  if (type < 0) d.fail("needs .texref, .samplerref or .surfref");
  t->textures = type == 0;
  t->surfaces = type == 2;
  t->object = d.source(1, Type::kB64);
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.destination(0, Type::kPred);
  d.insn().execute = execute_istypep;
}

}  // namespace ptxsim
