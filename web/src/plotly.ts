// The library of the charts. It is loaded while the first runs are simulated.
import plotly from "report/plotly-basic.min.js?url";

let loaded: Promise<void> | null = null;

export function library(): Promise<void> {
  loaded ??= new Promise((done, failed) => {
    document.head.append(Object.assign(document.createElement("script"), { src: plotly, onload: () => done(), onerror: failed }));
  });
  return loaded;
}
