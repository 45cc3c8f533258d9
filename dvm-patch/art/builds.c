/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The known builds of ART, and the layout of each one's frames.
 *
 * Ranges have the bounds of functions in .eh_frame, because the nearest dynamic symbol is wrong for a static function. The loop's body is the
 * code in which its pc and frame registers are both valid: from the prologue's last assignment to the pop that restores the first of them.
 */
#include "builds.h"

/* A smaller gap between two ranges is padding. */
#define PADDING 16

/* Debian 12, android-libart 11.0.0+r48-5, amd64. */
static const struct varid_build_range debian_11_amd64[] = {
	{ 0x166330, 0x17f258, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false, false> */
	{ 0x17f260, 0x1a1143, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true, false> */
	{ 0x1dad60, 0x1dafcb, VARID_RANGE_BRIDGE }, /* ArtMethod::Invoke */
	{ 0x3594b0, 0x359eb3, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromInvoke */
	{ 0x359ec0, 0x35a5c7, VARID_RANGE_BRIDGE }, /* Execute */
	{ 0x35a5d0, 0x362083, VARID_RANGE_BRIDGE }, /* InterpreterJni */
	{ 0x362090, 0x3625d5, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromDeoptimize */
	{ 0x3625e0, 0x3626c5, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromEntryPoint */
	{ 0x3626d0, 0x362a44, VARID_RANGE_BRIDGE }, /* ArtInterpreterToInterpreterBridge */
	{ 0x362cc0, 0x362cee, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeExact */
	{ 0x362cf0, 0x362d18, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvoke */
	{ 0x363490, 0x3638b6, VARID_RANGE_BRIDGE }, /* ArtInterpreterToCompiledCodeBridge */
	{ 0x363950, 0x363bc4, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeCommon */
	{ 0x363bd0, 0x363da9, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeCommon */
	{ 0x3640d0, 0x3643f2, VARID_RANGE_BRIDGE }, /* DoInvokeCustom */
	{ 0x3670e0, 0x3676cf, VARID_RANGE_BRIDGE }, /* DoCall<false, false> */
	{ 0x3676d0, 0x3683fb, VARID_RANGE_BRIDGE }, /* DoCall<false, true> */
	{ 0x368400, 0x3689c3, VARID_RANGE_BRIDGE }, /* DoCall<true, false> */
	{ 0x3689d0, 0x369688, VARID_RANGE_BRIDGE }, /* DoCall<true, true> */
	{ 0x369690, 0x369d1a, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<false> */
	{ 0x369d20, 0x36a3aa, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<true> */
	{ 0x379000, 0x392ef8, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false, true> */
	{ 0x393ac0, 0x3b75fe, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true, true> */
	{ 0x504d30, 0x504dbe, VARID_RANGE_BRIDGE }, /* MethodHandleInvoke */
	{ 0x504dc0, 0x50591f, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeInternal */
	{ 0x505920, 0x5061a7, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeInternal */
	{ 0x5061b0, 0x5062b6, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExact */
	{ 0x5062c0, 0x506464, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x509870, 0x509cb3, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x509cc0, 0x50a50c, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x629850, 0x629c26, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<ArtMethod*> */
	{ 0x629f00, 0x629f4c, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<_jmethodID*> */
	{ 0x629f50, 0x62a326, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<ArtMethod*> */
	{ 0x62a440, 0x62a48c, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<_jmethodID*> */
	{ 0x62a490, 0x62a874, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<ArtMethod*> */
	{ 0x62a880, 0x62a8cc, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<_jmethodID*> */
	{ 0x62a8d0, 0x62acb4, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<ArtMethod*> */
	{ 0x62acc0, 0x62ad0c, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<_jmethodID*> */
	{ 0x62ad10, 0x62b978, VARID_RANGE_BRIDGE }, /* InvokeMethod */
	{ 0x62c3b0, 0x62c89e, VARID_RANGE_BRIDGE }, /* InvokeConstructor */
	{ 0x7177e0, 0x718161, VARID_RANGE_BRIDGE }, /* InvokeProxyInvocationHandler */
	{ 0x75e770, 0x75f233, VARID_RANGE_BRIDGE }, /* artQuickToInterpreterBridge */
	{ 0x75f660, 0x7602b3, VARID_RANGE_BRIDGE }, /* artQuickProxyInvokeHandler */
	{ 0x761700, 0x763075, VARID_RANGE_BRIDGE }, /* artQuickResolutionTrampoline */
	{ 0x764580, 0x764a17, VARID_RANGE_BRIDGE }, /* artQuickGenericJniTrampoline */
	{ 0x764a20, 0x764a41, VARID_RANGE_BRIDGE }, /* artQuickGenericJniEndTrampoline */
	{ 0x76fbc0, 0x7707db, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtual */
	{ 0x7707e0, 0x7718ca, VARID_RANGE_BRIDGE }, /* MterpInvokeSuper */
	{ 0x7718d0, 0x7729a6, VARID_RANGE_BRIDGE }, /* MterpInvokeInterface */
	{ 0x7729b0, 0x7734a6, VARID_RANGE_BRIDGE }, /* MterpInvokeDirect */
	{ 0x7734b0, 0x773f1a, VARID_RANGE_BRIDGE }, /* MterpInvokeStatic */
	{ 0x773f20, 0x773fde, VARID_RANGE_BRIDGE }, /* MterpInvokeCustom */
	{ 0x773fe0, 0x773ff2, VARID_RANGE_BRIDGE }, /* MterpInvokePolymorphic */
	{ 0x774000, 0x774ab7, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualRange */
	{ 0x774ac0, 0x775aaf, VARID_RANGE_BRIDGE }, /* MterpInvokeSuperRange */
	{ 0x775ab0, 0x776a35, VARID_RANGE_BRIDGE }, /* MterpInvokeInterfaceRange */
	{ 0x776a40, 0x7773f1, VARID_RANGE_BRIDGE }, /* MterpInvokeDirectRange */
	{ 0x777400, 0x777d1b, VARID_RANGE_BRIDGE }, /* MterpInvokeStaticRange */
	{ 0x777d20, 0x777d83, VARID_RANGE_BRIDGE }, /* MterpInvokeCustomRange */
	{ 0x777d90, 0x777da2, VARID_RANGE_BRIDGE }, /* MterpInvokePolymorphicRange */
	{ 0x777db0, 0x778826, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualQuick */
	{ 0x778830, 0x779185, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualQuickRange */
	{ 0x7a4cf0, 0x7a4e3e, VARID_RANGE_BRIDGE }, /* art_quick_invoke_interface_trampoline_with_access_check */
	{ 0x7a4e50, 0x7a4f9e, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_trampoline_with_access_check */
	{ 0x7a4fb0, 0x7a50fe, VARID_RANGE_BRIDGE }, /* art_quick_invoke_direct_trampoline_with_access_check */
	{ 0x7a5110, 0x7a525e, VARID_RANGE_BRIDGE }, /* art_quick_invoke_super_trampoline_with_access_check */
	{ 0x7a5270, 0x7a53be, VARID_RANGE_BRIDGE }, /* art_quick_invoke_virtual_trampoline_with_access_check */
	{ 0x7a53d0, 0x7a56f2, VARID_RANGE_BRIDGE }, /* art_quick_invoke_stub */
	{ 0x7a5700, 0x7a5a54, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_stub */
	{ 0x7b04d0, 0x7b0617, VARID_RANGE_BRIDGE }, /* art_quick_proxy_invoke_handler */
	{ 0x7b0620, 0x7b089b, VARID_RANGE_BRIDGE }, /* art_quick_imt_conflict_trampoline */
	{ 0x7b08a0, 0x7b09f0, VARID_RANGE_BRIDGE }, /* art_quick_resolution_trampoline */
	{ 0x7b0a00, 0x7b0bc9, VARID_RANGE_BRIDGE }, /* art_quick_generic_jni_trampoline */
	{ 0x7b0bd0, 0x7b0d25, VARID_RANGE_BRIDGE }, /* art_quick_to_interpreter_bridge */
	{ 0x7b0d90, 0x7b0f4e, VARID_RANGE_BRIDGE }, /* art_quick_instrumentation_entry */
	{ 0x7b0f60, 0x7b116f, VARID_RANGE_BRIDGE }, /* art_quick_instrumentation_exit */
	{ 0x7b28b0, 0x7b2a08, VARID_RANGE_BRIDGE }, /* art_quick_invoke_polymorphic */
	{ 0x7b2a10, 0x7b2b65, VARID_RANGE_BRIDGE }, /* art_quick_invoke_custom */
	{ 0x7b2b70, 0x7b2b78, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplAsm */
	{ 0x7b2d80, 0x7b2da9, VARID_RANGE_INTERPRETER }, /* ExecuteMterpImpl: prologue */
	{ 0x7b2da9, 0x7b2e00, VARID_RANGE_BODY }, /* ExecuteMterpImpl: after the prologue */
	{ 0x7b2e00, 0x7bae00, VARID_RANGE_HANDLERS }, /* ExecuteMterpImpl: handlers of 128 bytes */
	{ 0x7bae00, 0x7bb01e, VARID_RANGE_BODY }, /* ExecuteMterpImpl: shared by handlers */
	{ 0x7bb01e, 0x7bb023, VARID_RANGE_INTERPRETER }, /* ExecuteMterpImpl: epilogue */
	{ 0x7bb088, 0x7bb600, VARID_RANGE_INTERPRETER }, /* nterp: prologue */
	{ 0x7bb600, 0x7c3600, VARID_RANGE_BODY }, /* nterp: bytecode */
	{ 0x7c3600, 0x7c989b, VARID_RANGE_INTERPRETER }, /* nterp: shared by handlers, prologues of invoked methods */
};

/* Debian 12, android-libart 11.0.0+r48-5, arm64. */
static const struct varid_build_range debian_11_arm64[] = {
	{ 0x1663bc, 0x17903c, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false, false> */
	{ 0x17903c, 0x196e20, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true, false> */
	{ 0x1cd1bc, 0x1cd438, VARID_RANGE_BRIDGE }, /* ArtMethod::Invoke */
	{ 0x331ca0, 0x332508, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromInvoke */
	{ 0x332508, 0x332a5c, VARID_RANGE_BRIDGE }, /* Execute */
	{ 0x332a5c, 0x339854, VARID_RANGE_BRIDGE }, /* InterpreterJni */
	{ 0x339854, 0x339cd8, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromDeoptimize */
	{ 0x339cd8, 0x339dd0, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromEntryPoint */
	{ 0x339dd0, 0x33a138, VARID_RANGE_BRIDGE }, /* ArtInterpreterToInterpreterBridge */
	{ 0x33a3a0, 0x33a3c8, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeExact */
	{ 0x33a3c8, 0x33a3f4, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvoke */
	{ 0x33aa7c, 0x33ae14, VARID_RANGE_BRIDGE }, /* ArtInterpreterToCompiledCodeBridge */
	{ 0x33aee4, 0x33b134, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeCommon */
	{ 0x33b134, 0x33b314, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeCommon */
	{ 0x33b5cc, 0x33b908, VARID_RANGE_BRIDGE }, /* DoInvokeCustom */
	{ 0x33e4b4, 0x33e9e8, VARID_RANGE_BRIDGE }, /* DoCall<false, false> */
	{ 0x33e9e8, 0x33f558, VARID_RANGE_BRIDGE }, /* DoCall<false, true> */
	{ 0x33f558, 0x33fa58, VARID_RANGE_BRIDGE }, /* DoCall<true, false> */
	{ 0x33fa58, 0x34057c, VARID_RANGE_BRIDGE }, /* DoCall<true, true> */
	{ 0x34057c, 0x340ee0, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<false> */
	{ 0x340ee0, 0x341844, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<true> */
	{ 0x34dc68, 0x361424, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false, true> */
	{ 0x361ff0, 0x37fb90, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true, true> */
	{ 0x4c1718, 0x4c17e0, VARID_RANGE_BRIDGE }, /* MethodHandleInvoke */
	{ 0x4c17e0, 0x4c2244, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeInternal */
	{ 0x4c2244, 0x4c2b8c, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeInternal */
	{ 0x4c2b8c, 0x4c2cb4, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExact */
	{ 0x4c2cb4, 0x4c2e80, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x4c6128, 0x4c6554, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x4c6554, 0x4c6d3c, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x5cc560, 0x5cc878, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<ArtMethod*> */
	{ 0x5ccc04, 0x5ccc9c, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<_jmethodID*> */
	{ 0x5ccc9c, 0x5ccfac, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<ArtMethod*> */
	{ 0x5cd0e8, 0x5cd140, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<_jmethodID*> */
	{ 0x5cd140, 0x5cd460, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<ArtMethod*> */
	{ 0x5cd460, 0x5cd4b8, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<_jmethodID*> */
	{ 0x5cd4b8, 0x5cd7e0, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<ArtMethod*> */
	{ 0x5cd7e0, 0x5cd878, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<_jmethodID*> */
	{ 0x5cd878, 0x5ce290, VARID_RANGE_BRIDGE }, /* InvokeMethod */
	{ 0x5cebf4, 0x5cf024, VARID_RANGE_BRIDGE }, /* InvokeConstructor */
	{ 0x6a3358, 0x6a3c98, VARID_RANGE_BRIDGE }, /* InvokeProxyInvocationHandler */
	{ 0x6e0a64, 0x6e1280, VARID_RANGE_BRIDGE }, /* artQuickToInterpreterBridge */
	{ 0x6e16cc, 0x6e2138, VARID_RANGE_BRIDGE }, /* artQuickProxyInvokeHandler */
	{ 0x6e3398, 0x6e49d8, VARID_RANGE_BRIDGE }, /* artQuickResolutionTrampoline */
	{ 0x6e5dbc, 0x6e61f4, VARID_RANGE_BRIDGE }, /* artQuickGenericJniTrampoline */
	{ 0x6e61f4, 0x6e6214, VARID_RANGE_BRIDGE }, /* artQuickGenericJniEndTrampoline */
	{ 0x6f0178, 0x6f0b24, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtual */
	{ 0x6f0b24, 0x6f1a20, VARID_RANGE_BRIDGE }, /* MterpInvokeSuper */
	{ 0x6f1a20, 0x6f27c8, VARID_RANGE_BRIDGE }, /* MterpInvokeInterface */
	{ 0x6f27c8, 0x6f307c, VARID_RANGE_BRIDGE }, /* MterpInvokeDirect */
	{ 0x6f307c, 0x6f38a0, VARID_RANGE_BRIDGE }, /* MterpInvokeStatic */
	{ 0x6f38a0, 0x6f3970, VARID_RANGE_BRIDGE }, /* MterpInvokeCustom */
	{ 0x6f3970, 0x6f398c, VARID_RANGE_BRIDGE }, /* MterpInvokePolymorphic */
	{ 0x6f398c, 0x6f4210, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualRange */
	{ 0x6f4210, 0x6f4f9c, VARID_RANGE_BRIDGE }, /* MterpInvokeSuperRange */
	{ 0x6f4f9c, 0x6f5c34, VARID_RANGE_BRIDGE }, /* MterpInvokeInterfaceRange */
	{ 0x6f5c34, 0x6f63c0, VARID_RANGE_BRIDGE }, /* MterpInvokeDirectRange */
	{ 0x6f63c0, 0x6f6ad4, VARID_RANGE_BRIDGE }, /* MterpInvokeStaticRange */
	{ 0x6f6ad4, 0x6f6b48, VARID_RANGE_BRIDGE }, /* MterpInvokeCustomRange */
	{ 0x6f6b48, 0x6f6b64, VARID_RANGE_BRIDGE }, /* MterpInvokePolymorphicRange */
	{ 0x6f6b64, 0x6f73ac, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualQuick */
	{ 0x6f73ac, 0x6f7ae4, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualQuickRange */
	{ 0x71a840, 0x71a934, VARID_RANGE_BRIDGE }, /* art_quick_invoke_interface_trampoline_with_access_check */
	{ 0x71a940, 0x71aa34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_trampoline_with_access_check */
	{ 0x71aa40, 0x71ab34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_direct_trampoline_with_access_check */
	{ 0x71ab40, 0x71ac34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_super_trampoline_with_access_check */
	{ 0x71ac40, 0x71ad34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_virtual_trampoline_with_access_check */
	{ 0x71ad40, 0x71afac, VARID_RANGE_BRIDGE }, /* art_quick_invoke_stub */
	{ 0x71afb0, 0x71b230, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_stub */
	{ 0x724410, 0x724534, VARID_RANGE_BRIDGE }, /* art_quick_proxy_invoke_handler */
	{ 0x724540, 0x7246f0, VARID_RANGE_BRIDGE }, /* art_quick_imt_conflict_trampoline */
	{ 0x724700, 0x724830, VARID_RANGE_BRIDGE }, /* art_quick_resolution_trampoline */
	{ 0x724840, 0x724990, VARID_RANGE_BRIDGE }, /* art_quick_generic_jni_trampoline */
	{ 0x7249a0, 0x724a98, VARID_RANGE_BRIDGE }, /* art_quick_to_interpreter_bridge */
	{ 0x724b00, 0x724c00, VARID_RANGE_BRIDGE }, /* art_quick_instrumentation_entry */
	{ 0x724c10, 0x724df0, VARID_RANGE_BRIDGE }, /* art_quick_instrumentation_exit */
	{ 0x726fd0, 0x7270cc, VARID_RANGE_BRIDGE }, /* art_quick_invoke_polymorphic */
	{ 0x7270d0, 0x7271c8, VARID_RANGE_BRIDGE }, /* art_quick_invoke_custom */
	{ 0x7271d0, 0x7271e4, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplAsm */
	{ 0x727400, 0x727438, VARID_RANGE_INTERPRETER }, /* ExecuteMterpImpl: prologue */
	{ 0x727438, 0x727480, VARID_RANGE_BODY }, /* ExecuteMterpImpl */
	{ 0x727480, 0x72f480, VARID_RANGE_HANDLERS }, /* ExecuteMterpImpl: bytecode */
	{ 0x72f480, 0x72f7c8, VARID_RANGE_BODY }, /* ExecuteMterpImpl: shared by handlers */
	{ 0x72f7c8, 0x72f80c, VARID_RANGE_INTERPRETER }, /* ExecuteMterpImpl: epilogues */
};

/*
 * Debian 12, android-libart 11.0.0+r48-5, armhf. Only its assembly has unwind information. The other bounds are those of the dynamic symbols
 * or, for functions without one, of their first instructions. The loop restores all its registers with its last instruction.
 */
static const struct varid_build_range debian_11_armhf[] = {
	{ 0x134f58, 0x14b614, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false, false> */
	{ 0x14b618, 0x171014, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true, false> */
	{ 0x1ac004, 0x1ac2d4, VARID_RANGE_BRIDGE }, /* ArtMethod::Invoke */
	{ 0x33c84c, 0x33d210, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromInvoke */
	{ 0x33d210, 0x33dab4, VARID_RANGE_BRIDGE }, /* Execute */
	{ 0x33dab4, 0x345dd8, VARID_RANGE_BRIDGE }, /* InterpreterJni */
	{ 0x345dd8, 0x346328, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromDeoptimize */
	{ 0x346328, 0x346438, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromEntryPoint */
	{ 0x346438, 0x3467f4, VARID_RANGE_BRIDGE }, /* ArtInterpreterToInterpreterBridge */
	{ 0x346a90, 0x346ae0, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeExact */
	{ 0x346ae0, 0x346b30, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvoke */
	{ 0x347560, 0x347950, VARID_RANGE_BRIDGE }, /* ArtInterpreterToCompiledCodeBridge */
	{ 0x3479b0, 0x347c64, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeCommon */
	{ 0x347c64, 0x347e84, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeCommon */
	{ 0x348174, 0x348510, VARID_RANGE_BRIDGE }, /* DoInvokeCustom */
	{ 0x34b6ac, 0x34bbd4, VARID_RANGE_BRIDGE }, /* DoCall<false, false> */
	{ 0x34bbd4, 0x34c86c, VARID_RANGE_BRIDGE }, /* DoCall<false, true> */
	{ 0x34c86c, 0x34cdb0, VARID_RANGE_BRIDGE }, /* DoCall<true, false> */
	{ 0x34cdb0, 0x34da10, VARID_RANGE_BRIDGE }, /* DoCall<true, true> */
	{ 0x34da10, 0x34e6f4, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<false> */
	{ 0x34e6f4, 0x34f3d8, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<true> */
	{ 0x35ea48, 0x3765a8, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false, true> */
	{ 0x377170, 0x39d144, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true, true> */
	{ 0x529350, 0x5293fc, VARID_RANGE_BRIDGE }, /* MethodHandleInvoke */
	{ 0x5293fc, 0x52a030, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeInternal */
	{ 0x52a030, 0x52ab14, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeInternal */
	{ 0x52ab14, 0x52ac1c, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExact */
	{ 0x52ac1c, 0x52adfc, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x52e5b8, 0x52eaa4, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x52eaa4, 0x52f378, VARID_RANGE_BRIDGE }, /* method handle call */
	{ 0x65ac3c, 0x65af88, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<ArtMethod*> */
	{ 0x65b2a8, 0x65b308, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<_jmethodID*> */
	{ 0x65b308, 0x65b654, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<ArtMethod*> */
	{ 0x65b800, 0x65b860, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<_jmethodID*> */
	{ 0x65b860, 0x65bbc4, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<ArtMethod*> */
	{ 0x65bbc4, 0x65bc24, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<_jmethodID*> */
	{ 0x65bc24, 0x65bf88, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<ArtMethod*> */
	{ 0x65bf88, 0x65bfe8, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<_jmethodID*> */
	{ 0x65bfe8, 0x65cc10, VARID_RANGE_BRIDGE }, /* InvokeMethod */
	{ 0x65d6d0, 0x65db4c, VARID_RANGE_BRIDGE }, /* InvokeConstructor */
	{ 0x758e58, 0x759938, VARID_RANGE_BRIDGE }, /* InvokeProxyInvocationHandler */
	{ 0x79fa8c, 0x7a043c, VARID_RANGE_BRIDGE }, /* artQuickToInterpreterBridge */
	{ 0x7a0860, 0x7a1534, VARID_RANGE_BRIDGE }, /* artQuickProxyInvokeHandler */
	{ 0x7a29f8, 0x7a4520, VARID_RANGE_BRIDGE }, /* artQuickResolutionTrampoline */
	{ 0x7a5a78, 0x7a5f10, VARID_RANGE_BRIDGE }, /* artQuickGenericJniTrampoline */
	{ 0x7a5f10, 0x7a5f44, VARID_RANGE_BRIDGE }, /* artQuickGenericJniEndTrampoline */
	{ 0x7b1ab0, 0x7b2728, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtual */
	{ 0x7b2728, 0x7b38d8, VARID_RANGE_BRIDGE }, /* MterpInvokeSuper */
	{ 0x7b38d8, 0x7b4910, VARID_RANGE_BRIDGE }, /* MterpInvokeInterface */
	{ 0x7b4910, 0x7b5368, VARID_RANGE_BRIDGE }, /* MterpInvokeDirect */
	{ 0x7b5368, 0x7b5d30, VARID_RANGE_BRIDGE }, /* MterpInvokeStatic */
	{ 0x7b5d30, 0x7b5e18, VARID_RANGE_BRIDGE }, /* MterpInvokeCustom */
	{ 0x7b5e18, 0x7b5e38, VARID_RANGE_BRIDGE }, /* MterpInvokePolymorphic */
	{ 0x7b5e38, 0x7b68a4, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualRange */
	{ 0x7b68a4, 0x7b7948, VARID_RANGE_BRIDGE }, /* MterpInvokeSuperRange */
	{ 0x7b7948, 0x7b87c4, VARID_RANGE_BRIDGE }, /* MterpInvokeInterfaceRange */
	{ 0x7b87c4, 0x7b90d0, VARID_RANGE_BRIDGE }, /* MterpInvokeDirectRange */
	{ 0x7b90d0, 0x7b9934, VARID_RANGE_BRIDGE }, /* MterpInvokeStaticRange */
	{ 0x7b9934, 0x7b99bc, VARID_RANGE_BRIDGE }, /* MterpInvokeCustomRange */
	{ 0x7b99bc, 0x7b99dc, VARID_RANGE_BRIDGE }, /* MterpInvokePolymorphicRange */
	{ 0x7b99dc, 0x7ba3fc, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualQuick */
	{ 0x7ba3fc, 0x7bac74, VARID_RANGE_BRIDGE }, /* MterpInvokeVirtualQuickRange */
	{ 0x7c7c08, 0x7c7d94, VARID_RANGE_BRIDGE }, /* art_quick_invoke_stub */
	{ 0x7c7d94, 0x7c7f1c, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_stub */
	{ 0x7e0a90, 0x7e0b88, VARID_RANGE_BRIDGE }, /* art_quick_invoke_stub_internal */
	{ 0x7e0f60, 0x7e0fc0, VARID_RANGE_BRIDGE }, /* art_quick_invoke_interface_trampoline_with_access_check */
	{ 0x7e0fd0, 0x7e1030, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_trampoline_with_access_check */
	{ 0x7e1040, 0x7e10a0, VARID_RANGE_BRIDGE }, /* art_quick_invoke_direct_trampoline_with_access_check */
	{ 0x7e10b0, 0x7e1110, VARID_RANGE_BRIDGE }, /* art_quick_invoke_super_trampoline_with_access_check */
	{ 0x7e1120, 0x7e1180, VARID_RANGE_BRIDGE }, /* art_quick_invoke_virtual_trampoline_with_access_check */
	{ 0x7e5b00, 0x7e5b54, VARID_RANGE_BRIDGE }, /* art_quick_proxy_invoke_handler */
	{ 0x7e5b60, 0x7e5c20, VARID_RANGE_BRIDGE }, /* art_quick_imt_conflict_trampoline */
	{ 0x7e5c30, 0x7e5c9c, VARID_RANGE_BRIDGE }, /* art_quick_resolution_trampoline */
	{ 0x7e5ca0, 0x7e5d28, VARID_RANGE_BRIDGE }, /* art_quick_generic_jni_trampoline */
	{ 0x7e5d30, 0x7e5d94, VARID_RANGE_BRIDGE }, /* art_quick_to_interpreter_bridge */
	{ 0x7e5dd0, 0x7e5e40, VARID_RANGE_BRIDGE }, /* art_quick_instrumentation_entry */
	{ 0x7e5e50, 0x7e5ea8, VARID_RANGE_BRIDGE }, /* art_quick_instrumentation_exit */
	{ 0x7e6790, 0x7e67f8, VARID_RANGE_BRIDGE }, /* art_quick_invoke_polymorphic */
	{ 0x7e6800, 0x7e6868, VARID_RANGE_BRIDGE }, /* art_quick_invoke_custom */
	{ 0x7e6870, 0x7e6878, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplAsm */
	{ 0x7e6980, 0x7e69a4, VARID_RANGE_INTERPRETER }, /* ExecuteMterpImpl: prologue */
	{ 0x7e69a4, 0x7e6a00, VARID_RANGE_BODY }, /* ExecuteMterpImpl */
	{ 0x7e6a00, 0x7eea00, VARID_RANGE_HANDLERS }, /* ExecuteMterpImpl: bytecode */
	{ 0x7eea00, 0x7eedd8, VARID_RANGE_BODY }, /* ExecuteMterpImpl: shared by handlers */
};

/* Debian 13, android-libart 14.0.0+r15-4+b1, amd64. */
static const struct varid_build_range debian_14_amd64[] = {
	{ 0x28e4b0, 0x28e6e6, VARID_RANGE_BRIDGE }, /* ArtMethod::Invoke */
	{ 0x436960, 0x4371e3, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromInvoke */
	{ 0x4371f0, 0x43784b, VARID_RANGE_BRIDGE }, /* Execute */
	{ 0x43e850, 0x43ee54, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromDeoptimize */
	{ 0x43ee60, 0x43ef86, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromEntryPoint */
	{ 0x43ef90, 0x43f167, VARID_RANGE_BRIDGE }, /* ArtInterpreterToInterpreterBridge */
	{ 0x43f620, 0x43f652, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeExact */
	{ 0x43f660, 0x43f68c, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvoke */
	{ 0x43ffd0, 0x4401ce, VARID_RANGE_BRIDGE }, /* ArtInterpreterToCompiledCodeBridge */
	{ 0x4409f0, 0x440daf, VARID_RANGE_BRIDGE }, /* DoInvokeCustom */
	{ 0x443e30, 0x444c07, VARID_RANGE_BRIDGE }, /* DoCall<false> */
	{ 0x444c10, 0x445a16, VARID_RANGE_BRIDGE }, /* DoCall<true> */
	{ 0x445a20, 0x44629f, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<false> */
	{ 0x4464b0, 0x446d2f, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<true> */
	{ 0x449a90, 0x45a0a6, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false> */
	{ 0x45d170, 0x46dd91, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true> */
	{ 0x5e5900, 0x5e5ac9, VARID_RANGE_BRIDGE }, /* MethodHandleInvoke */
	{ 0x5e5ad0, 0x5e691b, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExact */
	{ 0x5e6920, 0x5e6bef, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExactWithFrame */
	{ 0x72a3f0, 0x72a789, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<ArtMethod*> */
	{ 0x72aaa0, 0x72aaf7, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<_jmethodID*> */
	{ 0x72ab00, 0x72aee8, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<ArtMethod*> */
	{ 0x72b020, 0x72b077, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<_jmethodID*> */
	{ 0x72b080, 0x72b457, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<ArtMethod*> */
	{ 0x72b460, 0x72b4b7, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<_jmethodID*> */
	{ 0x72b4c0, 0x72b897, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<ArtMethod*> */
	{ 0x72b8a0, 0x72b8f7, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<_jmethodID*> */
	{ 0x72b900, 0x72bfa4, VARID_RANGE_BRIDGE }, /* InvokeConstructor */
	{ 0x72f970, 0x73070d, VARID_RANGE_BRIDGE }, /* InvokeMethod<4> */
	{ 0x730710, 0x7314ad, VARID_RANGE_BRIDGE }, /* InvokeMethod<8> */
	{ 0x81ce20, 0x81d92f, VARID_RANGE_BRIDGE }, /* InvokeProxyInvocationHandler */
	{ 0x860f00, 0x861561, VARID_RANGE_BRIDGE }, /* artQuickToInterpreterBridge */
	{ 0x861980, 0x862633, VARID_RANGE_BRIDGE }, /* artQuickProxyInvokeHandler */
	{ 0x862e50, 0x864af3, VARID_RANGE_BRIDGE }, /* artQuickResolutionTrampoline */
	{ 0x865fc0, 0x866663, VARID_RANGE_BRIDGE }, /* artQuickGenericJniTrampoline */
	{ 0x866670, 0x866695, VARID_RANGE_BRIDGE }, /* artQuickGenericJniEndTrampoline */
	{ 0x8666a0, 0x86718d, VARID_RANGE_BRIDGE }, /* artInvokeInterfaceTrampolineWithAccessCheck */
	{ 0x867190, 0x867c7d, VARID_RANGE_BRIDGE }, /* artInvokeDirectTrampolineWithAccessCheck */
	{ 0x867c80, 0x8687eb, VARID_RANGE_BRIDGE }, /* artInvokeStaticTrampolineWithAccessCheck */
	{ 0x8687f0, 0x8692dd, VARID_RANGE_BRIDGE }, /* artInvokeSuperTrampolineWithAccessCheck */
	{ 0x8692e0, 0x869dcd, VARID_RANGE_BRIDGE }, /* artInvokeVirtualTrampolineWithAccessCheck */
	{ 0x869dd0, 0x86ae56, VARID_RANGE_BRIDGE }, /* artInvokeInterfaceTrampoline */
	{ 0x86ae60, 0x86c018, VARID_RANGE_BRIDGE }, /* artInvokePolymorphic */
	{ 0x86c020, 0x86cb5e, VARID_RANGE_BRIDGE }, /* artInvokeCustom */
	{ 0x88f370, 0x88f4be, VARID_RANGE_BRIDGE }, /* art_quick_invoke_interface_trampoline_with_access_check */
	{ 0x88f4d0, 0x88f61e, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_trampoline_with_access_check */
	{ 0x88f630, 0x88f77e, VARID_RANGE_BRIDGE }, /* art_quick_invoke_direct_trampoline_with_access_check */
	{ 0x88f790, 0x88f8de, VARID_RANGE_BRIDGE }, /* art_quick_invoke_super_trampoline_with_access_check */
	{ 0x88f8f0, 0x88fa3e, VARID_RANGE_BRIDGE }, /* art_quick_invoke_virtual_trampoline_with_access_check */
	{ 0x88fa50, 0x88fd72, VARID_RANGE_BRIDGE }, /* art_quick_invoke_stub */
	{ 0x88fd80, 0x8900d4, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_stub */
	{ 0x8a8dc0, 0x8a8f05, VARID_RANGE_BRIDGE }, /* art_quick_proxy_invoke_handler */
	{ 0x8a8f10, 0x8a907d, VARID_RANGE_BRIDGE }, /* art_quick_imt_conflict_trampoline */
	{ 0x8a9090, 0x8a91e0, VARID_RANGE_BRIDGE }, /* art_quick_resolution_trampoline */
	{ 0x8a91f0, 0x8a9361, VARID_RANGE_BRIDGE }, /* art_quick_generic_jni_trampoline */
	{ 0x8a93d0, 0x8a9523, VARID_RANGE_BRIDGE }, /* art_quick_to_interpreter_bridge */
	{ 0x8aad60, 0x8aaeb6, VARID_RANGE_BRIDGE }, /* art_quick_invoke_polymorphic */
	{ 0x8aaec0, 0x8ab013, VARID_RANGE_BRIDGE }, /* art_quick_invoke_custom */
	{ 0x8ab020, 0x8ab028, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplAsm */
	{ 0x8ab560, 0x8abc80, VARID_RANGE_INTERPRETER }, /* nterp: prologue */
	{ 0x8abc80, 0x8b3c80, VARID_RANGE_HANDLERS }, /* nterp: bytecode */
	{ 0x8b3c80, 0x8baa12, VARID_RANGE_INTERPRETER }, /* nterp: shared by handlers, prologues of invoked methods */
};

/* Debian 13, android-libart 14.0.0+r15-4+b1, arm64. */
static const struct varid_build_range debian_14_arm64[] = {
	{ 0x2b68a4, 0x2b6ad4, VARID_RANGE_BRIDGE }, /* ArtMethod::Invoke */
	{ 0x445c64, 0x44641c, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromInvoke */
	{ 0x44641c, 0x446854, VARID_RANGE_BRIDGE }, /* Execute */
	{ 0x44d34c, 0x44d8c8, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromDeoptimize */
	{ 0x44d8c8, 0x44da08, VARID_RANGE_BRIDGE }, /* EnterInterpreterFromEntryPoint */
	{ 0x44da08, 0x44dbf4, VARID_RANGE_BRIDGE }, /* ArtInterpreterToInterpreterBridge */
	{ 0x44e07c, 0x44e0a8, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvokeExact */
	{ 0x44e0a8, 0x44e0d8, VARID_RANGE_BRIDGE }, /* DoMethodHandleInvoke */
	{ 0x44e7f4, 0x44e9d4, VARID_RANGE_BRIDGE }, /* ArtInterpreterToCompiledCodeBridge */
	{ 0x44f140, 0x44f4e8, VARID_RANGE_BRIDGE }, /* DoInvokeCustom */
	{ 0x45237c, 0x452f94, VARID_RANGE_BRIDGE }, /* DoCall<false> */
	{ 0x452f94, 0x453b84, VARID_RANGE_BRIDGE }, /* DoCall<true> */
	{ 0x453b84, 0x45459c, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<false> */
	{ 0x45482c, 0x455244, VARID_RANGE_BRIDGE }, /* DoInvokePolymorphic<true> */
	{ 0x458158, 0x465850, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<false> */
	{ 0x46867c, 0x476b14, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplCpp<true> */
	{ 0x5d042c, 0x5d0648, VARID_RANGE_BRIDGE }, /* MethodHandleInvoke */
	{ 0x5d0648, 0x5d1474, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExact */
	{ 0x5d1474, 0x5d170c, VARID_RANGE_BRIDGE }, /* MethodHandleInvokeExactWithFrame */
	{ 0x702c04, 0x702ef0, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<ArtMethod*> */
	{ 0x7032b0, 0x703328, VARID_RANGE_BRIDGE }, /* InvokeWithVarArgs<_jmethodID*> */
	{ 0x703328, 0x703630, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<ArtMethod*> */
	{ 0x7037f8, 0x703860, VARID_RANGE_BRIDGE }, /* InvokeWithJValues<_jmethodID*> */
	{ 0x703860, 0x703b84, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<ArtMethod*> */
	{ 0x703b84, 0x703bec, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithJValues<_jmethodID*> */
	{ 0x703bec, 0x703f18, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<ArtMethod*> */
	{ 0x703f18, 0x703fbc, VARID_RANGE_BRIDGE }, /* InvokeVirtualOrInterfaceWithVarArgs<_jmethodID*> */
	{ 0x703fbc, 0x70451c, VARID_RANGE_BRIDGE }, /* InvokeConstructor */
	{ 0x7079e8, 0x7085e8, VARID_RANGE_BRIDGE }, /* InvokeMethod<4> */
	{ 0x7085e8, 0x7091e8, VARID_RANGE_BRIDGE }, /* InvokeMethod<8> */
	{ 0x7e81c4, 0x7e8cc0, VARID_RANGE_BRIDGE }, /* InvokeProxyInvocationHandler */
	{ 0x826a3c, 0x826f78, VARID_RANGE_BRIDGE }, /* artQuickToInterpreterBridge */
	{ 0x8273c0, 0x827e4c, VARID_RANGE_BRIDGE }, /* artQuickProxyInvokeHandler */
	{ 0x8285bc, 0x829e2c, VARID_RANGE_BRIDGE }, /* artQuickResolutionTrampoline */
	{ 0x82b068, 0x82b690, VARID_RANGE_BRIDGE }, /* artQuickGenericJniTrampoline */
	{ 0x82b690, 0x82b6b4, VARID_RANGE_BRIDGE }, /* artQuickGenericJniEndTrampoline */
	{ 0x82b6b4, 0x82c04c, VARID_RANGE_BRIDGE }, /* artInvokeInterfaceTrampolineWithAccessCheck */
	{ 0x82c04c, 0x82c9e4, VARID_RANGE_BRIDGE }, /* artInvokeDirectTrampolineWithAccessCheck */
	{ 0x82c9e4, 0x82d3c4, VARID_RANGE_BRIDGE }, /* artInvokeStaticTrampolineWithAccessCheck */
	{ 0x82d3c4, 0x82dd5c, VARID_RANGE_BRIDGE }, /* artInvokeSuperTrampolineWithAccessCheck */
	{ 0x82dd5c, 0x82e6f4, VARID_RANGE_BRIDGE }, /* artInvokeVirtualTrampolineWithAccessCheck */
	{ 0x82e6f4, 0x82f44c, VARID_RANGE_BRIDGE }, /* artInvokeInterfaceTrampoline */
	{ 0x82f44c, 0x83033c, VARID_RANGE_BRIDGE }, /* artInvokePolymorphic */
	{ 0x83033c, 0x830c9c, VARID_RANGE_BRIDGE }, /* artInvokeCustom */
	{ 0x84fa40, 0x84fb34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_interface_trampoline_with_access_check */
	{ 0x84fb40, 0x84fc34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_trampoline_with_access_check */
	{ 0x84fc40, 0x84fd34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_direct_trampoline_with_access_check */
	{ 0x84fd40, 0x84fe34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_super_trampoline_with_access_check */
	{ 0x84fe40, 0x84ff34, VARID_RANGE_BRIDGE }, /* art_quick_invoke_virtual_trampoline_with_access_check */
	{ 0x84ff40, 0x8501f0, VARID_RANGE_BRIDGE }, /* art_quick_invoke_stub */
	{ 0x850200, 0x8504cc, VARID_RANGE_BRIDGE }, /* art_quick_invoke_static_stub */
	{ 0x866800, 0x866924, VARID_RANGE_BRIDGE }, /* art_quick_proxy_invoke_handler */
	{ 0x866930, 0x866a50, VARID_RANGE_BRIDGE }, /* art_quick_imt_conflict_trampoline */
	{ 0x866a60, 0x866b90, VARID_RANGE_BRIDGE }, /* art_quick_resolution_trampoline */
	{ 0x866ba0, 0x866ca4, VARID_RANGE_BRIDGE }, /* art_quick_generic_jni_trampoline */
	{ 0x866d10, 0x866e08, VARID_RANGE_BRIDGE }, /* art_quick_to_interpreter_bridge */
	{ 0x8691d0, 0x8692cc, VARID_RANGE_BRIDGE }, /* art_quick_invoke_polymorphic */
	{ 0x8692d0, 0x8693c8, VARID_RANGE_BRIDGE }, /* art_quick_invoke_custom */
	{ 0x8693d0, 0x8693e4, VARID_RANGE_INTERPRETER }, /* ExecuteSwitchImplAsm */
	{ 0x8698e0, 0x86a100, VARID_RANGE_INTERPRETER }, /* nterp: prologue */
	{ 0x86a100, 0x872100, VARID_RANGE_HANDLERS }, /* nterp: bytecode */
	{ 0x872100, 0x8789c4, VARID_RANGE_INTERPRETER }, /* nterp: shared by handlers, prologues of invoked methods */
};

/*
 * PushShadowFrame where an interpreter calls a method. The copies of it where native or compiled code calls one are not among these: no
 * frame comes before theirs. ART 11 for armhf links a frame first.
 */
static const struct varid_build_push debian_11_amd64_pushes[] = {
	{ 0x36272e, 0x362731 }, /* ArtInterpreterToInterpreterBridge */
	{ 0x7702d6, 0x7702da }, /* MterpInvokeVirtual */
	{ 0x771188, 0x77118b }, /* MterpInvokeSuper */
	{ 0x7721c1, 0x7721c5 }, /* MterpInvokeInterface */
	{ 0x772fa6, 0x772faa }, /* MterpInvokeDirect */
	{ 0x773ab6, 0x773aba }, /* MterpInvokeStatic */
	{ 0x77460a, 0x77460d }, /* MterpInvokeVirtualRange */
	{ 0x7753d2, 0x7753d5 }, /* MterpInvokeSuperRange */
	{ 0x776289, 0x77628d }, /* MterpInvokeInterfaceRange */
	{ 0x776f3a, 0x776f3d }, /* MterpInvokeDirectRange */
	{ 0x7778d3, 0x7778d6 }, /* MterpInvokeStaticRange */
	{ 0x7783b6, 0x7783ba }, /* MterpInvokeVirtualQuick */
	{ 0x778d3a, 0x778d3d }, /* MterpInvokeVirtualQuickRange */
};

static const struct varid_build_push debian_11_arm64_pushes[] = {
	{ 0x339e28, 0x339e3c }, /* ArtInterpreterToInterpreterBridge */
	{ 0x6f06fc, 0x6f0704 }, /* MterpInvokeVirtual */
	{ 0x6f13a0, 0x6f13a8 }, /* MterpInvokeSuper */
	{ 0x6f20b8, 0x6f20c0 }, /* MterpInvokeInterface */
	{ 0x6f2c48, 0x6f2c50 }, /* MterpInvokeDirect */
	{ 0x6f34dc, 0x6f34e4 }, /* MterpInvokeStatic */
	{ 0x6f3e0c, 0x6f3e14 }, /* MterpInvokeVirtualRange */
	{ 0x6f4998, 0x6f49a0 }, /* MterpInvokeSuperRange */
	{ 0x6f5548, 0x6f5550 }, /* MterpInvokeInterfaceRange */
	{ 0x6f5fbc, 0x6f5fc4 }, /* MterpInvokeDirectRange */
	{ 0x6f6738, 0x6f6740 }, /* MterpInvokeStaticRange */
	{ 0x6f6ff4, 0x6f6ffc }, /* MterpInvokeVirtualQuick */
	{ 0x6f7750, 0x6f7758 }, /* MterpInvokeVirtualQuickRange */
};

static const struct varid_build_push debian_14_amd64_pushes[] = {
	{ 0x43efd9, 0x43efdc }, /* ArtInterpreterToInterpreterBridge */
};

static const struct varid_build_push debian_14_arm64_pushes[] = {
	{ 0x44da58, 0x44da68 }, /* ArtInterpreterToInterpreterBridge */
};

/*
 * The fields of quick rules for frames of saved registers. runtime: address of Runtime::instance_; a Runtime starts with the six callee-save
 * methods. native: frame size of a native method, which is that of the third of these; the sizes of all six follow. entry: offset in a
 * method.
 */
#define SAVED_REGISTERS_64(entry, runtime, native, ...)                                       \
	.method_entry = (entry), .special_methods = (runtime),                                \
	.special_count = 6, .special_sizes = { __VA_ARGS__ },                                 \
	.method_flags = 4, .native_flag = 0x100, .native_size = (native)

/* nterp: the registers of its bytecode pc and its references, and where its frames save the caller's, in bytes below the CFA. */
#define NTERP_64(pc, references, above, pc_below, references_below, start, end)               \
	.kind = VARID_RULE_AT_SP,                                                             \
	.reg_pc = (pc), .reg_frame = (references),                                            \
	.cfa_word = -8, .cfa_bias = (above),                                                  \
	.saved_pc = (pc_below), .saved_frame = (references_below), .saved_return = 8,         \
	.code_start = (start), .code_end = (end)

/* Compiled code. cache, map, counts: offsets of the JIT's code cache; 0: it is not read. */
#define COMPILED_64(rule, cache, map, counts)                                                 \
	.kind = (rule), .reg_pc = VARID_NO_REG, .reg_frame = VARID_NO_REG,                    \
	.code_cache = (cache), .code_cache_map = (map), .code_cache_counts = (counts)

#define LIST_64(pc, frame, bias)                                                              \
	.kind = VARID_RULE_LIST, .reg_pc = (pc), .reg_frame = (frame), .frame_bias = (bias),  \
	.frame_link = 0, .frame_method = 8, .frame_pc = 24, .frame_insns = 32, .frame_index = 52

/* ART 11 with pointers of eight bytes: all layouts differ only in their rules. */
#define ART_11_64(elf_machine, count, quick)                                                  \
	.machine = (elf_machine), .word = 8, .reference = 4,                                  \
	.flags = VARID_LAYOUT_ON_NATIVE_STACK,                                                \
	.rule_count = (count), .quick_rule = (quick),                                         \
	.thread_tid = 0x10, .thread_fragment = 0xb8,                                          \
	.fragment_quick = 0, .fragment_link = 8, .fragment_top = 16,                          \
	.method_class = 0, .method_code = 8, .method_index = 12,                              \
	.class_dex_cache = 16, .dex_cache_dex_file = 16, .dex_file_begin = 8

/* The same for ART 14. The frames of its switch interpreter are in the list, and no register leads to them. */
#define ART_14_64(elf_machine, count)                                                         \
	.machine = (elf_machine), .word = 8, .reference = 4,                                  \
	.flags = VARID_LAYOUT_ON_NATIVE_STACK | VARID_LAYOUT_CODE_ADDRESS,                    \
	.rule_count = (count), .quick_rule = 1,                                               \
	.thread_tid = 0xc, .thread_fragment = 0xb0,                                           \
	.fragment_quick = 0, .fragment_link = 8, .fragment_top = 16,                          \
	.method_class = 0, .method_code = 16, .method_index = 8,                              \
	.class_dex_cache = 16, .dex_cache_dex_file = 16, .dex_file_begin = 8

#define SAVED_11_AMD64 SAVED_REGISTERS_64(32, 0x8b26d8, 208, 96, 96, 208, 272, 272, 272)
#define SAVED_11_ARM64 SAVED_REGISTERS_64(32, 0x814628, 224, 176, 96, 224, 512, 512, 512)
#define SAVED_14_AMD64 SAVED_REGISTERS_64(24, 0x8d4e58, 208, 96, 96, 208, 272, 272, 272)
#define SAVED_14_ARM64 SAVED_REGISTERS_64(24, 0x8b24c0, 224, 176, 96, 224, 512, 512, 512)

#define PUSHES(table) .pushes = (table), .push_count = sizeof(table) / sizeof((table)[0])

static const struct varid_build builds[] = {
	{
		.build_id = { 0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78, 0x04, 0x67,
			      0xfb, 0x41, 0xf5, 0x0e, 0x66, 0x90, 0x82, 0xcc, 0xac, 0x64 },
		.name = "ART 11.0.0+r48 (Debian 12, amd64)",
		.layout = {
			ART_11_64(62 /* EM_X86_64 */, 3, 1),
			.rules = {
				{ LIST_64(12 /* r12 */, 13 /* r13 */, -64) },
				{ NTERP_64(12 /* r12 */, 15 /* r15 */, 88, 40, 16, 0x7bb088, 0x7c989b), SAVED_11_AMD64 },
				{ COMPILED_64(VARID_RULE_SIZED, 536, 864, 1088), SAVED_11_AMD64 },
			},
		},
		.tls_word = 0x8abf08, /* R_X86_64_TPOFF64 art::Thread::self_tls_ */
		.dex_debug = 0x8ae0d8,
		.dex_debug_hook = 0x8ae0d0,
		.runtime_instrumentation = 0x2b8,
		.text_start = 0x157900,
		.text_end = 0x7c9f96,
		.ranges = debian_11_amd64,
		.range_count = sizeof(debian_11_amd64) / sizeof(debian_11_amd64[0]),
		PUSHES(debian_11_amd64_pushes),
	},
	{
		.build_id = { 0x2d, 0xe2, 0x1a, 0x0d, 0x4c, 0xa9, 0xb5, 0x44, 0x62, 0x22,
			      0xc7, 0x0a, 0x4e, 0x81, 0x4a, 0x34, 0x27, 0x58, 0xd2, 0xe2 },
		.name = "ART 11.0.0+r48 (Debian 12, arm64)",
		.layout = {
			ART_11_64(183 /* EM_AARCH64 */, 2, VARID_NO_RULE),
			.rules = {
				{ LIST_64(20 /* x20 */, 21 /* x21 */, -64) },
				{ COMPILED_64(VARID_RULE_SIZED, 0, 0, 0), SAVED_11_ARM64 },
			},
		},
		.tls_word = 0x80dc30, /* R_AARCH64_TLS_TPREL64 art::Thread::self_tls_ */
		.dex_debug = 0x8100d8,
		.dex_debug_hook = 0x8100d0,
		.runtime_instrumentation = 0x2b8,
		.text_start = 0x158510,
		.text_end = 0x72ff30,
		.ranges = debian_11_arm64,
		.range_count = sizeof(debian_11_arm64) / sizeof(debian_11_arm64[0]),
		PUSHES(debian_11_arm64_pushes),
	},
	{
		.build_id = { 0xe3, 0x83, 0xdc, 0x2a, 0x23, 0xc4, 0x43, 0xc3, 0x45, 0xf8,
			      0x3e, 0xbd, 0x57, 0xc2, 0x27, 0x4d, 0x8c, 0xdc, 0x63, 0x24 },
		.name = "ART 11.0.0+r48 (Debian 12, armhf)",
		.layout = {
			.machine = 40 /* EM_ARM */, .word = 4, .reference = 4,
			.flags = VARID_LAYOUT_ON_NATIVE_STACK,
			.rule_count = 1, .quick_rule = VARID_NO_RULE,
			.thread_tid = 0x10, .thread_fragment = 0xac,
			.fragment_quick = 0, .fragment_link = 4, .fragment_top = 8,
			.method_class = 0, .method_code = 8, .method_index = 12,
			.class_dex_cache = 16, .dex_cache_dex_file = 16, .dex_file_begin = 4,
			.rules = { {
				.kind = VARID_RULE_LIST,
				.reg_pc = 4 /* r4 */, .reg_frame = 5 /* r5 */, .frame_bias = -40,
				.frame_link = 0, .frame_method = 4, .frame_pc = 12,
				.frame_insns = 16, .frame_index = 28,
			} },
		},
		.tls_word = 0x83bdec, /* R_ARM_TLS_TPOFF32 art::Thread::self_tls_ */
		.dex_debug = 0x83d0a0,
		.dex_debug_hook = 0x83d098,
		.runtime_instrumentation = 0x1c0,
		.text_start = 0x125cb0,
		.text_end = 0x7eee08,
		.ranges = debian_11_armhf,
		.range_count = sizeof(debian_11_armhf) / sizeof(debian_11_armhf[0]),
	},
	{
		.build_id = { 0x61, 0x49, 0x7c, 0x95, 0xb2, 0x38, 0x87, 0xe9, 0x2d, 0x3e,
			      0x2e, 0x82, 0x06, 0x34, 0x5c, 0x91, 0xfb, 0x28, 0xd2, 0x1d },
		.name = "ART 14.0.0+r15 (Debian 13, amd64)",
		.layout = {
			ART_14_64(62 /* EM_X86_64 */, 3),
			.rules = {
				{ LIST_64(VARID_NO_REG, VARID_NO_REG, 0) },
				{ NTERP_64(12 /* r12 */, 15 /* r15 */, 88, 40, 16, 0x8ab560, 0x8baa12), SAVED_14_AMD64 },
				{ COMPILED_64(VARID_RULE_CODE_INFO, 672, 864, 1256), SAVED_14_AMD64 },
			},
		},
		.tls_word = 0x8cc8a8,
		.dex_debug = 0x8cee38,
		.dex_debug_hook = 0x8cee30,
		.text_start = 0x244c80,
		.text_end = 0x8baf83,
		.ranges = debian_14_amd64,
		.range_count = sizeof(debian_14_amd64) / sizeof(debian_14_amd64[0]),
		PUSHES(debian_14_amd64_pushes),
	},
	{
		.build_id = { 0x15, 0x2e, 0x5e, 0xef, 0x3e, 0x17, 0x82, 0x0c, 0xab, 0x5b,
			      0xf4, 0x18, 0xff, 0xbb, 0x77, 0x42, 0xe0, 0x02, 0x3b, 0xcf },
		.name = "ART 14.0.0+r15 (Debian 13, arm64)",
		.layout = {
			ART_14_64(183 /* EM_AARCH64 */, 2),
			.rules = {
				{ LIST_64(VARID_NO_REG, VARID_NO_REG, 0) },
				{ NTERP_64(22 /* x22 */, 25 /* x25 */, 160, 72, 48, 0x8698e0, 0x8789c4), SAVED_14_ARM64 },
			},
		},
		.tls_word = 0x89a028,
		.dex_debug = 0x8ac570,
		.dex_debug_hook = 0x8ac568,
		.text_start = 0x26fa00,
		.text_end = 0x87964c,
		.ranges = debian_14_arm64,
		.range_count = sizeof(debian_14_arm64) / sizeof(debian_14_arm64[0]),
		PUSHES(debian_14_arm64_pushes),
	},
};

const struct varid_build *varid_build_at(varid_u32 index)
{
	return index < sizeof(builds) / sizeof(builds[0]) ? &builds[index] : 0;
}

const struct varid_build *varid_build_find(const varid_u8 *build_id, varid_u32 size)
{
	varid_u32 i, k;

	if (size != VARID_BUILD_ID_SIZE)
		return 0;
	for (i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		for (k = 0; k < size && builds[i].build_id[k] == build_id[k]; k++)
			;
		if (k == size)
			return &builds[i];
	}
	return 0;
}

void varid_build_layout(const struct varid_build *build, varid_u64 base, varid_s64 tls_offset, struct varid_layout *layout)
{
	varid_u32 i;

	*layout = build->layout;
	layout->tls_offset = tls_offset;
	for (i = 0; i < layout->rule_count; i++) {
		struct varid_rule *rule = &layout->rules[i];

		if (rule->kind != VARID_RULE_AT_SP && rule->kind != VARID_RULE_SIZED && rule->kind != VARID_RULE_CODE_INFO)
			continue;
		rule->special_methods += base;
		if (rule->kind != VARID_RULE_AT_SP)
			continue;
		rule->code_start += base;
		rule->code_end += base;
	}
}

/* Appends base + [start, end) if there is space. Returns the new count. */
static varid_u32 add(struct varid_range *out, varid_u32 count, varid_u32 capacity, varid_u64 base,
		     varid_u32 start, varid_u32 end, varid_u32 kind)
{
	if (count >= capacity)
		return count;
	out[count].start = base + start;
	out[count].end = base + end;
	out[count].kind = kind;
	out[count].rule = 0;
	return count + 1;
}

varid_u32 varid_build_ranges(const struct varid_build *build, varid_u64 base,
			     struct varid_range *out, varid_u32 capacity)
{
	const varid_u8 quick = build->layout.quick_rule;
	const struct varid_rule *rule = quick == VARID_NO_RULE ? 0 : &build->layout.rules[quick];
	varid_u32 at = build->text_start;
	varid_u32 count = 0, i;

	for (i = 0; i < build->range_count; i++) {
		const struct varid_build_range *range = &build->ranges[i];

		if (range->start >= at + PADDING)
			count = add(out, count, capacity, base, at, range->start, VARID_RANGE_VM);
		count = add(out, count, capacity, base, range->start, range->end, range->kind);
		if (count && rule && range->start >= rule->code_start && range->end <= rule->code_end)
			out[count - 1].rule = quick;
		at = range->end;
	}
	if (build->text_end >= at + PADDING)
		count = add(out, count, capacity, base, at, build->text_end, VARID_RANGE_VM);
	return count;
}
