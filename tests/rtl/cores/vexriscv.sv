// VexRiscv. An instruction's cycles are those in the write-back stage.
module tb (
    input  logic        clk,
    input  logic        resetn,
    output logic        i_request,
    output logic [29:0] i_address,
    output logic [2:0]  i_type,
    input  logic        i_ack,
    input  logic [31:0] i_data,
    output logic        d_request,
    output logic        d_write,
    output logic [29:0] d_address,
    output logic [2:0]  d_type,
    output logic [31:0] d_written,
    output logic [3:0]  d_select,
    input  logic        d_ack,
    input  logic [31:0] d_data,
    output logic        occupied,
    output logic [31:0] pc,
    output logic        leaves,
    output logic        has_caches,
    output logic        instruction_refill,
    output logic        data_refill
);
    logic i_cyc, i_stb, d_cyc, d_stb;

    VexRiscv core (
        .externalResetVector(32'h80),
        .timerInterrupt(1'b0),
        .softwareInterrupt(1'b0),
        .externalInterruptArray(32'b0),
        .iBusWishbone_CYC(i_cyc),
        .iBusWishbone_STB(i_stb),
        .iBusWishbone_ACK(i_ack),
        .iBusWishbone_WE(),
        .iBusWishbone_ADR(i_address),
        .iBusWishbone_DAT_MISO(i_data),
        .iBusWishbone_DAT_MOSI(),
        .iBusWishbone_SEL(),
        .iBusWishbone_ERR(1'b0),
        .iBusWishbone_CTI(i_type),
        .iBusWishbone_BTE(),
        .dBusWishbone_CYC(d_cyc),
        .dBusWishbone_STB(d_stb),
        .dBusWishbone_ACK(d_ack),
        .dBusWishbone_WE(d_write),
        .dBusWishbone_ADR(d_address),
        .dBusWishbone_DAT_MISO(d_data),
        .dBusWishbone_DAT_MOSI(d_written),
        .dBusWishbone_SEL(d_select),
        .dBusWishbone_ERR(1'b0),
        .dBusWishbone_CTI(d_type),
        .dBusWishbone_BTE(),
        .clk,
        .reset(!resetn)
    );

    assign i_request = i_cyc && i_stb;
    assign d_request = d_cyc && d_stb;
    assign occupied = core.lastStageIsValid;
    assign pc = core.lastStagePc;
    assign leaves = core.lastStageIsFiring;
    assign has_caches = 1;

    // A refill begins when its loader becomes busy. What is executed after reset, before the program, has low addresses.
    logic i_loading, d_loading;
    always_ff @(posedge clk) begin
        i_loading <= core.IBusCachedPlugin_cache.lineLoader_valid;
        d_loading <= core.dataCache_1.loader_valid;
    end
    assign instruction_refill = core.IBusCachedPlugin_cache.lineLoader_valid && !i_loading &&
        core.IBusCachedPlugin_cache.lineLoader_address >= 32'h1000;
    assign data_refill = core.dataCache_1.loader_valid && !d_loading;
endmodule
