#include "checkpoint/npy.hpp"

#include "io_test_support.hpp"
#include "support/rng.hpp"

namespace dualgemm::checkpoint {
namespace {

using test::as_bytes;
using test::fails_with;
using test::little_endian;

std::string npy_bytes(const std::string& header, const std::string& data, int version = 1) {
  const std::string length = version == 1 ? little_endian(static_cast<uint16_t>(header.size()))
                                          : little_endian(static_cast<uint32_t>(header.size()));
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} + length + header + data;
}

std::string header(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
}

Expected<TensorView> parse_header(const std::string& bytes, const NpyOptions& options = {}) {
  return parse_npy(as_bytes(bytes), "dir/test.npy", options);
}

// What NumPy 2.4 writes for np.save of np.arange(6, dtype='<f4').reshape(2, 3).
std::string numpy_file() {
  std::string bytes = npy_bytes(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n",
      "");
  for (int i = 0; i < 6; ++i) bytes += little_endian(static_cast<float>(i));
  return bytes;
}

TEST(NpyTest, ReadsAndWritesWhatNumpyWrites) {
  const std::string bytes = numpy_file();
  ASSERT_EQ(bytes.size(), 128u + 24u);
  const Expected<TensorView> tensor = parse_header(bytes);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->name, "test");
  EXPECT_EQ(tensor->dtype, ElementType::kF32);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(*decode_to_f32(*tensor), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const test::TempDirectory directory;
  ASSERT_TRUE(write_npy(directory / "x.npy", *tensor).ok());
  EXPECT_EQ(test::read_text(directory / "x.npy"), bytes);
  EXPECT_EQ(open_npy(directory / "x.npy")->tensors().begin()->first, "x");
}

TEST(NpyTest, EveryTypeAndVersion) {
  const std::pair<const char*, ElementType> types[] = {
      {"'|b1'", ElementType::kBool}, {"'|u1'", ElementType::kU8},  {"'|i1'", ElementType::kI8},
      {"'<u2'", ElementType::kU16},  {"'<i2'", ElementType::kI16}, {"'<f2'", ElementType::kF16},
      {"'<u4'", ElementType::kU32},  {"'<i4'", ElementType::kI32}, {"'<f4'", ElementType::kF32},
      {"'<u8'", ElementType::kU64},  {"'<i8'", ElementType::kI64}, {"'<f8'", ElementType::kF64},
      {"'<c8'", ElementType::kC64},  {"'=f4'", ElementType::kF32}, {"\"f4\"", ElementType::kF32}};
  for (const auto& [descr, type] : types) {
    const std::string data(static_cast<size_t>(bits_of(type) / 8 * 3), 'x');
    for (const int version : {1, 2, 3}) {
      const std::string bytes = npy_bytes(header(descr, "(3,)"), data, version);
      const Expected<TensorView> tensor = parse_header(bytes);
      ASSERT_TRUE(tensor.ok()) << descr << tensor.status().message();
      EXPECT_EQ(tensor->dtype, type) << descr;
      EXPECT_EQ(test::to_text(tensor->data), data);
    }
  }
}

TEST(NpyTest, SixteenBitsAreBf16OnRequest) {
  const std::string bytes = npy_bytes(header("'<u2'", "(1,)"), std::string("\xC0\x3F", 2));
  EXPECT_EQ(parse_header(bytes)->dtype, ElementType::kU16);
  const Expected<TensorView> tensor = parse_header(bytes, {.u2_is_bf16 = true});
  EXPECT_EQ(*decode_to_f32(*tensor), std::vector<float>{1.5f});
  const std::string opaque = npy_bytes(header("'|V2'", "(1,)"), "xx");
  EXPECT_EQ(parse_header(opaque, {.u2_is_bf16 = true})->dtype, ElementType::kBF16);
  EXPECT_TRUE(fails_with(parse_header(opaque).status(), StatusCode::kUnsupported, "V2"));
  EXPECT_TRUE(fails_with(parse_header(opaque).status(), StatusCode::kUnsupported, "--u2-is-bf16"));
}

TEST(NpyTest, LiteralsInEveryLegalSpelling) {
  const char* headers[] = {
      "{'shape':(2,3),'fortran_order':False,'descr':'<u2'}",
      "  {  \"descr\" : \"<u2\" , \"shape\" : ( 2 , 3 , ) , 'fortran_order' : False , } \n",
      "{'descr':'<u2','fortran_order':False,'shape':(2L, 3L)}",
      "{'descr':'<u2','fortran_order':False,'shape':(002,3)}",
  };
  for (const char* text : headers) {
    const Expected<TensorView> tensor = parse_header(npy_bytes(text, "abcdefghijkl"));
    ASSERT_TRUE(tensor.ok()) << text << tensor.status().message();
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3})) << text;
  }
  EXPECT_EQ(parse_header(npy_bytes(header("'|u1'", "()"), "x"))->shape.size(), 0u);
  EXPECT_EQ(parse_header(npy_bytes(header("'|u1'", "(0, 7)"), ""))->elements(), 0);
  // With one axis both orders are the same.
  EXPECT_TRUE(
      parse_header(npy_bytes("{'descr':'|u1','fortran_order':True,'shape':(2,)}", "xy")).ok());
}

TEST(NpyTest, UnsupportedArraysSaySo) {
  const std::pair<std::string, const char*> cases[] = {
      {npy_bytes("{'descr':'<f4','fortran_order':True,'shape':(1,1)}", "xxxx"), "Fortran"},
      {npy_bytes(header("'>f4'", "(1,)"), "xxxx"), "big-endian"},
      {npy_bytes(header("'|O'", "(1,)"), "xxxxxxxx"), "'|O'"},
      {npy_bytes(header("'<U3'", "(1,)"), "xxxxxxxxxxxx"), "'<U3'"},
      {npy_bytes(header("''", "(1,)"), ""), "dtype"},
      {npy_bytes(header("[('a', '<f4')]", "(1,)"), "xxxx"), "structured"},
      {npy_bytes(header("'<f4'", "(1,)"), "xxxx", 4), "version 4.0"},
  };
  for (const auto& [bytes, message] : cases) {
    EXPECT_TRUE(fails_with(parse_header(bytes).status(), StatusCode::kUnsupported, message));
  }
}

TEST(NpyTest, HostileFilesAreRefusedWithAReason) {
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  const std::pair<std::string, const char*> cases[] = {
      {"", "magic"},
      {"\x93NUMPX\x01\x00\x00\x00", "magic"},
      {std::string("\x93NUMPY\x01\x00\x10\x00", 10), "inside the file"},
      {std::string("\x93NUMPY\x02\x00\x10\x00", 10), "missing"},
      {std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF", 12), "at most"},
      {npy_bytes("", ""), "must be '{'"},
      {npy_bytes("{", ""), "quoted"},
      {npy_bytes("{}", ""), "missing"},
      {npy_bytes("{'descr':'<f4','shape':(0,)}", ""), "missing"},
      {npy_bytes("{'descr':'<f4','descr':'<f4'}", ""), "twice"},
      {npy_bytes("{'x':1}", ""), "'x'"},
      {npy_bytes("{'descr' '<f4'}", ""), "must be ':'"},
      {npy_bytes("{'descr':'<f4' 'shape':(0,)}", ""), "must be '}'"},
      {npy_bytes("{'descr':'<\\x66'}", ""), "escape"},
      {npy_bytes(std::string("{'de\0scr':'<f4'}", 16), ""), "control"},
      {npy_bytes("{'descr:", ""), "quoted"},
      {npy_bytes("{'fortran_order':0}", ""), "True or False"},
      {npy_bytes(header("'|u1'", "(2)"), "xx"), "tuple"},
      {npy_bytes(header("'|u1'", "2"), "xx"), "must be '('"},
      {npy_bytes(header("'|u1'", "[2]"), "xx"), "must be '('"},
      {npy_bytes(header("'|u1'", "(1 2)"), "xx"), "comma"},
      {npy_bytes(header("'|u1'", "(,)"), "x"), "digit"},
      {npy_bytes(header("'|u1'", "(-1,)"), ""), "digit"},
      {npy_bytes(header("'|u1'", "(1.0,)"), "x"), "comma"},
      {npy_bytes(header("'|u1'", "(0x1,)"), "x"), "comma"},
      {npy_bytes(header("'|u1'", "(9223372036854775808,)"), ""), "63 bits"},
      {npy_bytes(header("'|u1'", "(4294967296, 4294967296)"), ""), "63 bits"},
      {npy_bytes(header("'<f8'", "(2305843009213693952,)"), ""), "63 bits"},
      {npy_bytes(header("'|u1'", many + ")"), "x"), "rank"},
      {npy_bytes(header("'|u1'", "(1,"), "x"), "digit"},
      {npy_bytes(header("'|u1'", "(1,)") + "{}", "x"), "after the dict"},
      {npy_bytes(header("'<f4'", "(1,)"), "xxx"), "3 bytes"},
      {npy_bytes(header("'<f4'", "(1,)"), "xxxxx"), "5 bytes"},
  };
  for (const auto& [bytes, message] : cases) {
    EXPECT_TRUE(fails_with(parse_header(bytes).status(), StatusCode::kCorruptFile, message))
        << bytes;
  }
}

TEST(NpyTest, EveryPrefixIsRefusedAndNoFlippedBitReachesOutside) {
  const std::string bytes = numpy_file();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_header(bytes.substr(0, size)).ok());
  EXPECT_FALSE(parse_header(bytes + "x").ok());
  int accepted = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const Expected<TensorView> tensor = parse_header(flipped);
    if (!tensor) continue;
    ++accepted;
    EXPECT_LE(tensor->data.data() + tensor->data.size(), as_bytes(flipped).data() + flipped.size());
    EXPECT_EQ(*checked_bytes(tensor->dtype, tensor->shape, ""), 24) << "bit " << bit;
  }
  EXPECT_GE(accepted, 8 * 24);
}

TEST(NpyTest, RoundTripOfRandomShapes) {
  const test::TempDirectory directory;
  test::Rng rng;
  for (int type = 0; type <= static_cast<int>(ElementType::kC64); ++type) {
    const auto dtype = static_cast<ElementType>(type);
    std::vector<int64_t> shape;
    for (int64_t rank = rng.integer(0, 3); rank > 0; --rank) shape.push_back(rng.integer(0, 6));
    shape.push_back(8 * rng.integer(1, 3));
    const std::string data(static_cast<size_t>(*checked_bytes(dtype, shape, "")),
                           static_cast<char>(type));
    const Status status = write_npy(directory / "x.npy", {"x", dtype, shape, as_bytes(data)});
    if (bits_of(dtype) == 6) {
      EXPECT_TRUE(fails_with(status, StatusCode::kUnsupported, "F6"));
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.message();
    const Expected<TensorFile> file =
        open_npy(directory / "x.npy", {.u2_is_bf16 = dtype == ElementType::kBF16});
    ASSERT_TRUE(file.ok()) << name_of(dtype) << file.status().message();
    const TensorView back = *file->get("x");
    EXPECT_EQ(test::to_text(back.data), data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back.data.data()) % 64, 0u);
    if (dtype == ElementType::kF4) shape.back() /= 2;  // bytes
    EXPECT_EQ(back.shape, shape);
    const bool raw =
        dtype == ElementType::kF4 || (type >= static_cast<int>(ElementType::kF8E4M3) &&
                                      type <= static_cast<int>(ElementType::kF8E5M2Fnuz));
    EXPECT_EQ(back.dtype, raw ? ElementType::kU8 : dtype);
  }
}

TEST(NpyTest, WriterRefusesWhatItCannotStore) {
  const test::TempDirectory directory;
  const auto write = [&](const TensorView& tensor) {
    return write_npy(directory / "x.npy", tensor);
  };
  EXPECT_TRUE(fails_with(write({"x", ElementType::kF32, {2}, as_bytes("abcd")}),
                         StatusCode::kInvalidArgument, "needs 8"));
  EXPECT_TRUE(fails_with(write({"x", ElementType::kF4, {2, 3}, as_bytes("abc")}),
                         StatusCode::kInvalidArgument, "even"));
  EXPECT_TRUE(
      fails_with(write({"x", ElementType::kU8, std::vector<int64_t>(40'000, 1), as_bytes("a")}),
                 StatusCode::kInvalidArgument, "64 KiB"));
  EXPECT_TRUE(directory.entries().empty());
  EXPECT_TRUE(fails_with(open_npy(directory / "x.npy").status(), StatusCode::kNotFound, "x.npy"));
}

}  // namespace
}  // namespace dualgemm::checkpoint
