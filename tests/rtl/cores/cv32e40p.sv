// CV32E40P. An instruction's cycles are those in the ID stage.
module tb (
    input  logic        clk,
    input  logic        resetn,
    output logic        instr_req,
    output logic [31:0] instr_addr,
    input  logic        instr_rvalid,
    input  logic [31:0] instr_rdata,
    output logic        data_req,
    output logic        data_we,
    output logic [3:0]  data_be,
    output logic [31:0] data_addr,
    output logic [31:0] data_wdata,
    input  logic        data_rvalid,
    input  logic [31:0] data_rdata,
    output logic        occupied,
    output logic [31:0] pc,
    output logic        leaves,
    output logic        has_caches,
    output logic        instruction_refill,
    output logic        data_refill
);
    cv32e40p_core core (
        .clk_i(clk),
        .rst_ni(resetn),
        .pulp_clock_en_i(1'b1),
        .scan_cg_en_i(1'b0),
        .boot_addr_i(32'h80),
        .mtvec_addr_i(32'b0),
        .dm_halt_addr_i(32'b0),
        .hart_id_i(32'b0),
        .dm_exception_addr_i(32'b0),
        .instr_req_o(instr_req),
        .instr_gnt_i(1'b1),
        .instr_rvalid_i(instr_rvalid),
        .instr_addr_o(instr_addr),
        .instr_rdata_i(instr_rdata),
        .data_req_o(data_req),
        .data_gnt_i(1'b1),
        .data_rvalid_i(data_rvalid),
        .data_we_o(data_we),
        .data_be_o(data_be),
        .data_addr_o(data_addr),
        .data_wdata_o(data_wdata),
        .data_rdata_i(data_rdata),
        .apu_busy_o(),
        .apu_req_o(),
        .apu_gnt_i(1'b0),
        .apu_operands_o(),
        .apu_op_o(),
        .apu_flags_o(),
        .apu_rvalid_i(1'b0),
        .apu_result_i(32'b0),
        .apu_flags_i('0),
        .irq_i(32'b0),
        .irq_ack_o(),
        .irq_id_o(),
        .debug_req_i(1'b0),
        .debug_havereset_o(),
        .debug_running_o(),
        .debug_halted_o(),
        .fetch_enable_i(1'b1),
        .core_sleep_o()
    );

    assign occupied = core.instr_valid_id;
    assign pc = core.pc_id;
    assign leaves = core.id_stage_i.minstret;
    assign has_caches = 0;
    assign instruction_refill = 0;
    assign data_refill = 0;
endmodule
