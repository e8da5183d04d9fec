# cmake -DINPUT=page.html -DOUTPUT=page.cc -DHEADER=room/page.h -DNAME=kPage -P EmbedText.cmake
# Writes a source file in which orla::node::NAME, declared in HEADER, is the text of INPUT.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"
namespace orla::node {
static constexpr unsigned char kBytes[] = {
${bytes}0};
const std::string_view ${NAME}(reinterpret_cast<const char*>(kBytes), sizeof kBytes - 1);
}  // namespace orla::node
")
