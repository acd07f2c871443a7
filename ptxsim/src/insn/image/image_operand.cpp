#include "insn/image/image_operand.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

struct Geometry {
  std::string_view name;
  ImageShape shape;
  bool layered;
  uint32_t coordinates;
};
constexpr Geometry kGeometries[] = {
    {"1d", ImageShape::k1d, false, 1},           {"2d", ImageShape::k2d, false, 2},
    {"3d", ImageShape::k3d, false, 3},           {"a1d", ImageShape::k1dLayered, true, 1},
    {"a2d", ImageShape::k2dLayered, true, 2},    {"cube", ImageShape::kCube, false, 3},
    {"acube", ImageShape::kCubeLayered, true, 3}};

const Geometry& take_geometry(Decode& d, std::initializer_list<std::string_view> names) {
  for (const char* samples : {"2dms", "a2dms"})
    if (d.modifiers().has(samples))
      d.fail(fmt::format(".{}: textures of several samples are not modelled", samples));
  for (const Geometry& geometry : kGeometries)
    if (std::ranges::find(names, geometry.name) != names.end() && d.modifiers().take(geometry.name))
      return geometry;
  d.fail(fmt::format("needs a geometry: .{}", fmt::join(names, " .")));
}

constexpr Decoder kDecoders[] = {
    {"tex", decode_tex, traits::kImage},         {"tld4", decode_tex, traits::kImage},
    {"suld", decode_surface, traits::kImage},    {"sust", decode_surface, traits::kImage},
    {"sured", decode_surface, traits::kImage},   {"txq", decode_image_query, traits::kQuery},
    {"suq", decode_image_query, traits::kQuery}, {"istypep", decode_istypep, traits::kQuery}};

}  // namespace

std::span<const Decoder> decoders_image() { return kDecoders; }

Slot take_image_object(Decode& d, size_t index) {
  const Decode::Address address = d.address(index);
  if (address.base_bytes != 8 || address.variable != nullptr || address.offset != 0)
    d.fail("the object must be a 64-bit register: a texture or surface object, not a reference");
  return address.base;
}

ImageOperand take_image_operand(Decode& d, size_t index,
                                std::initializer_list<std::string_view> names) {
  const Geometry& geometry = take_geometry(d, names);
  ImageOperand operand;
  operand.object = take_image_object(d, index);
  operand.geometry = geometry.shape;
  operand.count = geometry.coordinates;
  const Decode::Address address = d.address(index);
  if (address.more.size() == 2)
    d.fail("samplers apart from their texture (.samplerref) are not modelled");
  if (address.more.size() != 1) d.fail("needs [object, {coordinates}]");
  const Operand& more = *address.more[0];
  const bool is_vector = more.kind == Operand::Kind::kVector;
  const size_t given = is_vector ? more.parts.size() : 1;
  const size_t needed = geometry.coordinates + (geometry.layered ? 1u : 0u);
  if (given < needed || given > 4)
    d.fail(fmt::format("{} coordinates; .{} needs {}", given, geometry.name, needed));
  const auto part = [&](size_t i) {
    return d.source(is_vector ? more.parts[i] : more, Type::kB32);
  };
  if (geometry.layered) operand.layer = part(0);
  for (uint32_t i = 0; i < geometry.coordinates; ++i)
    operand.coordinates[i] = part(i + (geometry.layered ? 1 : 0));
  return operand;
}

const Image& image_at(const Execution& x, Slot object, int lane) {
  const uint64_t value = x.source<uint64_t>(object)[lane];
  const Images& images = x.machine.global().images;
  const auto found = images.find(value);
  if (found == images.end())
    x.fault(fmt::format("0x{:x} is no texture or surface object", value), lane);
  return found->second;
}

const Image& texture_at(const Execution& x, const ImageOperand& operand, int lane) {
  const Image& image = image_at(x, operand.object, lane);
  if (image.is_surface) x.fault("a surface object where a texture object is needed", lane);
  const bool linear = image.shape == ImageShape::kLinear && operand.geometry == ImageShape::k1d;
  if (image.shape != operand.geometry && !linear)
    x.fault(fmt::format("a fetch of {} from a texture of {}", name_of(operand.geometry),
                        name_of(image.shape)),
            lane);
  return image;
}

// The faces of cubes are layers to surface instructions.
const Image& surface_at(const Execution& x, const ImageOperand& operand, int lane) {
  const Image& image = image_at(x, operand.object, lane);
  if (!image.is_surface) x.fault("a texture object where a surface object is needed", lane);
  const bool faces = image.is_cube() && operand.geometry == ImageShape::k2dLayered;
  if (image.shape != operand.geometry && !faces)
    x.fault(fmt::format("an access of {} to a surface of {}", name_of(operand.geometry),
                        name_of(image.shape)),
            lane);
  return image;
}

}  // namespace ptxsim
