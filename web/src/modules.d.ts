declare module "engine.wasm?url" {
  const url: string;
  export default url;
}
declare module "kept.json" {
  const kept: { tables: unknown; answers: Record<string, unknown> };
  export default kept;
}
declare module "report/plotly-basic.min.js?url" {
  const url: string;
  export default url;
}
declare module "report/charts.js" {
  export function showCharts(root: HTMLElement, sections: unknown): { close(): void; drawn: Promise<void> };
}
