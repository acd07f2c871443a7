// Descriptors of prepared weights against each other, those of GPUs too: nothing here needs one.
#include "plan/prepared_bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/enum_table.hpp"

namespace dualgemm {
namespace {

constexpr Problem kWeights{.m = 1, .n = 24, .k = 48, .l = 3};

std::vector<PreparedFormat> prepared_formats() {
  std::vector<PreparedFormat> formats;
  for (int32_t i = 1; i < core::kEnumCount<PreparedFormat>; ++i)
    formats.push_back(static_cast<PreparedFormat>(i));
  return formats;
}

PreparedView view_at(const PreparedDescriptor& descriptor) {
  return {descriptor, reinterpret_cast<const void*>(uintptr_t{1} << 32), descriptor.bytes};
}

TEST(PreparedDescriptors, SizesAndAlignment) {
  for (const PreparedFormat format : prepared_formats()) {
    const bool cpu = plan::device_of(format) == DeviceKind::kCpu;
    for (const int64_t part : {1, 255, 256, 257, 512}) {
      const PreparedDescriptor d = plan::describe_prepared(format, kWeights, part);
      EXPECT_EQ(d.expert_bytes, 256 + (part + 255) / 256 * 256);
      EXPECT_EQ(d.bytes, 3 * d.expert_bytes);
      EXPECT_EQ(d.expert_offset(2), 2 * d.expert_bytes);
      EXPECT_EQ(d.alignment, cpu ? 64 : 256) << name_of(format);
      EXPECT_TRUE(plan::check_view(view_at(d)).ok()) << plan::check_view(view_at(d)).message();
    }
  }
}

// Bytes of one format are taken where that one is wanted, and nowhere else.
TEST(PreparedDescriptors, EveryFormatFitsItselfAlone) {
  for (const PreparedFormat made : prepared_formats()) {
    const PreparedView view = view_at(plan::describe_prepared(made, kWeights, 1000));
    for (const PreparedFormat wanted : prepared_formats()) {
      const PreparedDescriptor plans = plan::describe_prepared(wanted, kWeights, 1000);
      const Status status = plan::check_view_fits(plans, view);
      if (made == wanted) {
        EXPECT_TRUE(status.ok()) << status.message();
      } else if (plan::device_of(made) != plan::device_of(wanted)) {
        const std::string on = name_of(plan::device_of(made)),
                          for_plan = name_of(plan::device_of(wanted));
        EXPECT_EQ(status.message(),
                  "prepared: made on " + on + "; must be made on the plan's device, " + for_plan);
      } else {
        const auto told = [](PreparedFormat format, int32_t version) {
          return std::string(name_of(format)) + " version " + std::to_string(version) +
                 ", n 24, k 48, l 3";
        };
        EXPECT_EQ(status.message(), "prepared: " + told(made, view.descriptor.version) +
                                        "; must be made for the plan's " +
                                        told(wanted, plans.version));
      }
    }
  }
}

// A header is read as what was written, by whatever library has the format.
TEST(PreparedDescriptors, HeadersSayWhatDescriptorsSay) {
  for (const PreparedFormat format : prepared_formats()) {
    const PreparedDescriptor d = plan::describe_prepared(format, kWeights, 1000);
    uint8_t header[kPreparedHeaderBytes];
    plan::write_header(d, header);
    const auto read = plan::read_header(header, d.bytes);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, d);
    for (const int32_t other : {d.version - 1, d.version + 1}) {
      header[12] = static_cast<uint8_t>(other);
      EXPECT_EQ(plan::read_header(header, d.bytes).status().message(),
                "prepared: " + std::string(name_of(format)) + " version " + std::to_string(other) +
                    "; this library knows version " + std::to_string(d.version));
    }
  }
}

// Bytes that were saved before their order changed are refused by name.
TEST(PreparedDescriptors, VersionsOfToday) {
  for (const PreparedFormat format : prepared_formats()) {
    const bool changed =
        format == PreparedFormat::kSm90aF16 || format == PreparedFormat::kSm90aBF16;
    EXPECT_EQ(plan::describe_prepared(format, kWeights, 1000).version, changed ? 2 : 1)
        << name_of(format);
  }
}

// Numbers that overflow, or that do not agree with each other.
TEST(PreparedDescriptors, WildNumbersAreRefused) {
  const PreparedDescriptor good =
      plan::describe_prepared(PreparedFormat::kCpuPanels, kWeights, 1000);
  const int64_t wild[] = {INT64_MIN, -256, -1, 0, 1, int64_t{1} << 62, INT64_MAX - 255, INT64_MAX};
  for (const auto member : {&PreparedDescriptor::n, &PreparedDescriptor::k, &PreparedDescriptor::l,
                            &PreparedDescriptor::expert_bytes, &PreparedDescriptor::bytes,
                            &PreparedDescriptor::alignment, &PreparedDescriptor::columns}) {
    for (const int64_t number : wild) {
      if (number == good.*member) continue;
      PreparedView view = view_at(good);
      view.descriptor.*member = number;
      EXPECT_FALSE(plan::check_view_fits(good, view).ok()) << number;
      const bool legal =  // of other weights
          (member == &PreparedDescriptor::n && number > 0) ||
          (member == &PreparedDescriptor::k && number > 0 && number % 16 == 0);
      EXPECT_EQ(plan::check_view(view).ok(), legal) << number;
      const auto some = plan::some_experts(view, 1, 1);
      EXPECT_EQ(some.ok(), legal) << number;
    }
  }
  PreparedView all = view_at(good);
  all.descriptor.l = int64_t{1} << 56;
  all.descriptor.expert_bytes = 1280;
  all.descriptor.bytes = 0;  // what is left of 5 * 2^64
  all.bytes = INT64_MAX;
  EXPECT_FALSE(plan::check_view(all).ok());
}

}  // namespace
}  // namespace dualgemm
