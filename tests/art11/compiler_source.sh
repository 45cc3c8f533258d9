# shellcheck shell=bash
# How are files of ART's source compiled? Functions and flags that the builds of all releases have in common; it is sourced.
# The caller sets name (what messages begin with), here (its own folder), art11 (this folder) and jobs (how many compilers run at a time).
# shellcheck disable=SC2034,SC2154

# Puts Debian's packages into WORK: the source of VERSION becomes WORK/art, what the others hold is below WORK/dev.
unpack() { # RELEASE VERSION WORK PACKAGE...
    local release=$1 version=$2 work=$3 package packages
    shift 3
    packages=$("$here/../board/packages.sh" amd64 "$release" src:android-platform-art "$@")
    for package in $packages; do
        case $package in
        *_"$version".dsc) dpkg-source --no-check --extract "$package" "$work/art" >/dev/null ;;
        *.dsc) echo "$name: Debian's source is now ${package##*/}, libart is of $version" >&2; exit 1 ;;
        *) dpkg-deb --extract "$package" "$work/dev" ;;
        esac
    done
}

need() { # TOOL...
    local tool
    for tool; do
        command -v "$tool" >/dev/null || { echo "$name: $tool is missing: scripts/deps.sh --test installs it" >&2; exit 1; }
    done
}

repair() { # FILE SED-SCRIPT: changes a line that the compiler refuses
    sed -i.before "$2" "$1"
    ! cmp -s "$1" "$1.before" || { echo "$name: $1 is not as expected" >&2; exit 1; }
}

repair_compiler() { # of all releases
    repair compiler/optimizing/register_allocator_linear_scan.cc 's/^static ArenaVector<\(.*\)RemoveIntervalAndPotentialOtherHalf/static ScopedArenaVector<\1RemoveIntervalAndPotentialOtherHalf/'
    cp "$art11/xz_utils.cc" libelffile/elf/xz_utils.cc
}

sources() { # FOLDER...: what is compiled of them for x86-64, which needs the files for x86, too
    find "$@" -name '*.cc' ! -name '*_test.cc' ! -path '*/arm*' ! -name '*_arm*' ! -path '*/riscv*' ! -name '*_riscv*' \
        ! -name '*_shared.cc' -print
    find "$@" -name '*_x86_shared.cc' -print
}

# As debian/libart.mk has it: what decides the layout of objects must be as in Debian's libart.
flags=(
    -std=gnu++17 -fPIC -fno-rtti -fno-exceptions -fno-strict-aliasing -fvisibility=protected -fno-omit-frame-pointer -w
    -include cmath -fpch-instantiate-templates
    -DNDEBUG -D__STDC_CONSTANT_MACROS -D__STDC_FORMAT_MACROS -D_FILE_OFFSET_BITS=64 -D_LARGEFILE_SOURCE=1
    -DART_BASE_ADDRESS=0x60000000 -DART_BASE_ADDRESS_MIN_DELTA=-0x1000000 -DART_BASE_ADDRESS_MAX_DELTA=0x1000000
    -DART_DEFAULT_COMPACT_DEX_LEVEL=fast -DART_DEFAULT_GC_TYPE_IS_CMS -DART_ENABLE_ADDRESS_SANITIZER=1
    -DART_ENABLE_CODEGEN_x86 -DART_ENABLE_CODEGEN_x86_64 -DART_FRAME_SIZE_LIMIT=1736
    -DART_READ_BARRIER_TYPE_IS_BAKER=1 -DART_USE_READ_BARRIER=1
    -DART_STACK_OVERFLOW_GAP_{arm,arm64,riscv64,x86,x86_64}"=8192"
    -DBUILDING_LIBART=1 -DIMT_SIZE=43 -DUSE_D8_DESUGAR=1
    -I. -I{compiler,dex2oat,dex2oat/include,dexlayout,disassembler,cmdline,libartbase,libartbase/arch,libartpalette/include}
    -I{libdexfile,libdexfile/external/include,libelffile,libnativebridge/include,libnativeloader/include,libprofile,runtime,sigchainlib}
    -isystem../dev/usr/include{/android,/android/nativehelper,,/x86_64-linux-gnu}
)

compile() { # LIST OPTION...: FILE of the list becomes objects/FILE.o
    local list=$1
    shift
    xargs dirname <"$list" | sort -u | sed 's,^,objects/,' | xargs mkdir -p
    xargs -P "$jobs" -I '{}' clang++-16 "${flags[@]}" "$@" -c '{}' -o 'objects/{}.o' <"$list"
}

compile_compiler() { # the files of compiler.list. Two classes of ART are called CallingConvention.
    grep ^compiler/jni/ compiler.list >jni.list
    grep -v ^compiler/jni/ compiler.list >others.list
    compile others.list -O1 -include-pch compiler.pch
    compile jni.list -O1
}

libraries() { # NAME...: Debian's, whose packages for development the linker does not need
    printf -- '-l:lib%s ' "$@"
}

link_compiler() { # OPTION...: libart-compiler.so
    # shellcheck disable=SC2046 # a list of words
    clang++-16 -shared -o libart-compiler.so $(sed 's,.*,objects/&.o,' compiler.list) -Wl,-soname,libart-compiler.so -Wl,--build-id \
        -Wl,-z,defs,--allow-shlib-undefined "$@"
}
