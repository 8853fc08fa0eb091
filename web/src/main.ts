import "report/report.css";
import "./page.css";
import { mount } from "svelte";
import App from "./App.svelte";

mount(App, { target: document.getElementById("app")! });

// A page on a disk has no service worker, and needs none.
if ("serviceWorker" in navigator && location.protocol.startsWith("http")) void navigator.serviceWorker.register("./sw.js");
