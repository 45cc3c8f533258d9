// PicoRV32 with look-ahead memory. An instruction's cycles are those from its launch to the next one's.
module tb #(
    parameter bit FAST_MUL = 1,
    parameter bit BARREL_SHIFTER = 1,
    parameter bit TWO_STAGE_SHIFT = 1,
    parameter bit DUALPORT = 1,
    parameter bit COMPRESSED = 1
) (
    input  logic        clk,
    input  logic        resetn,
    output logic        mem_la_read,
    output logic        mem_la_write,
    output logic [31:0] mem_la_addr,
    output logic [31:0] mem_la_wdata,
    output logic [3:0]  mem_la_wstrb,
    input  logic [31:0] mem_rdata,
    output logic        occupied,
    output logic [31:0] pc,
    output logic        leaves,
    output logic        has_caches,
    output logic        instruction_refill,
    output logic        data_refill
);
    picorv32 #(
        .ENABLE_MUL(!FAST_MUL),
        .ENABLE_FAST_MUL(FAST_MUL),
        .ENABLE_DIV(1),
        .BARREL_SHIFTER(BARREL_SHIFTER),
        .TWO_STAGE_SHIFT(TWO_STAGE_SHIFT),
        .ENABLE_REGS_DUALPORT(DUALPORT),
        .COMPRESSED_ISA(COMPRESSED),
        .PROGADDR_RESET(32'h80)
    ) core (
        .clk,
        .resetn,
        .mem_ready(1'b1),
        .mem_rdata,
        .mem_la_read,
        .mem_la_write,
        .mem_la_addr,
        .mem_la_wdata,
        .mem_la_wstrb,
        .pcpi_wr(1'b0),
        .pcpi_rd(32'b0),
        .pcpi_wait(1'b0),
        .pcpi_ready(1'b0),
        .irq(32'b0)
    );

    assign occupied = core.dbg_valid_insn;
    assign pc = core.dbg_insn_addr;
    assign leaves = occupied && core.launch_next_insn;
    assign has_caches = 0;
    assign instruction_refill = 0;
    assign data_refill = 0;
endmodule
