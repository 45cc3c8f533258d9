# How is libart built? As Debian's makefile says, which is in the source; from its folder. CHANGED is this folder.
# What most files of the VM include is parsed once.
include debian/libart.mk

$(filter runtime/%, $(OBJECTS_CXX)): private CXXFLAGS += -include-pch debian/out/libart.pch
$(filter runtime/%, $(OBJECTS_CXX)): debian/out/libart.pch

debian/out/libart.pch: $(CHANGED)/libart.h debian/out/asm_defines.h
	$(CXX) -x c++-header -fpch-instantiate-templates -o $@ $< $(CPPFLAGS) $(CXXFLAGS)
