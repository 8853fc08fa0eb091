import "report/report.css";
import "./page.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { fromHash } from "./settings";

void fromHash(location.hash).then((given) => mount(App, { target: document.getElementById("app")!, props: { given } }));

// A page on a disk has no service worker, and needs none.
if ("serviceWorker" in navigator && location.protocol.startsWith("http")) void navigator.serviceWorker.register("./sw.js");
