/** Of a plan as EXPLAIN prints it in JSON. */
export interface PlanNode {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows of the table that the plan read, the ones that it dropped included. */
export function rowsExamined(node: PlanNode, table: string): number {
  const dropped = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  const own = node["Relation Name"] === table ? (node["Actual Rows"] + dropped) * node["Actual Loops"] : 0;
  return (node.Plans ?? []).reduce((sum, inner) => sum + rowsExamined(inner, table), own);
}

export function blocksOf(node: PlanNode): number {
  return node["Shared Hit Blocks"] + node["Shared Read Blocks"];
}
