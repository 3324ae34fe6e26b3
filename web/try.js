// The page to try a model: a form made from its signature. What comes from the server is only ever set as text.
"use strict";

const at = (id) => document.getElementById(id);
const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
};
const IMAGE_SIDE = 280;
const POLL_MS = 1000;
const FLOATS = ["DT_FLOAT", "DT_DOUBLE", "DT_HALF", "DT_BFLOAT16"];

let token = new URLSearchParams(location.hash.slice(1)).get("token") || "";
let version = null; // the newest that answers
let signatures = {};
let readers = {}; // by input: its value, as JSON has it

function trouble(text) {
  at("trouble").hidden = !text;
  at("trouble").textContent = text || "";
}

async function call(path, body) {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  let response;
  try {
    response = await fetch(path, { method: body === undefined ? "GET" : "POST", body, headers, cache: "no-store" });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  at("login").hidden = response.status !== 401;
  const text = await response.text();
  let parsed;
  try {
    // Numbers that JSON does not have.
    parsed = JSON.parse(text.replace(/(?<=[[\s,:])(-?Infinity|NaN)(?=[\],}\s])/g, '"$1"'));
  } catch {
    throw new Error("The server said " + response.status + " " + text.slice(0, 200));
  }
  if (!response.ok) {
    const error = new Error(parsed.error || "The server said " + response.status);
    error.status = response.status;
    throw error;
  }
  return parsed;
}

const modelPath = () => "/v1/models/" + encodeURIComponent(at("model").value);

// -- inputs

const shapeOf = (info) => (info.tensor_shape.unknown_rank ? [] : info.tensor_shape.dim.map((dim) => Number(dim.size)));

// Height, width and channels of a row, if it looks like a picture.
function pictureOf(info) {
  const shape = shapeOf(info).slice(1);
  if (!FLOATS.includes(info.dtype) && info.dtype !== "DT_UINT8" && info.dtype !== "DT_INT32") return null;
  if (shape.length === 1 && shape[0] === 784) return { height: 28, width: 28, channels: 0, flat: true };
  const [height, width, channels] = shape;
  if (shape.length < 2 || shape.length > 3 || height < 8 || width < 8 || height > 512 || width > 512) return null;
  if (shape.length === 3 && channels !== 1 && channels !== 3) return null;
  return { height, width, channels: channels || 0, flat: false };
}

function drawing(info, picture, box) {
  const canvas = make("canvas");
  canvas.width = canvas.height = IMAGE_SIDE;
  canvas.tabIndex = 0;
  canvas.setAttribute("aria-label", "draw here, or drop a picture");
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const clear = () => {
    context.fillStyle = "#000";
    context.fillRect(0, 0, IMAGE_SIDE, IMAGE_SIDE);
  };
  clear();
  let last = null;
  const where = (event) => {
    const area = canvas.getBoundingClientRect();
    return [((event.clientX - area.left) * IMAGE_SIDE) / area.width, ((event.clientY - area.top) * IMAGE_SIDE) / area.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = where(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    const next = where(event);
    context.strokeStyle = "#fff";
    context.lineWidth = 22;
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(...last);
    context.lineTo(...next);
    context.stroke();
    last = next;
  });
  canvas.addEventListener("pointerup", () => {
    last = null;
    predict();
  });
  const show = (file) => {
    if (!file) return;
    const image = new Image();
    const address = URL.createObjectURL(file);
    image.onload = () => {
      clear();
      context.drawImage(image, 0, 0, IMAGE_SIDE, IMAGE_SIDE);
      URL.revokeObjectURL(address);
      predict();
    };
    image.onerror = () => trouble("That file is no picture that this browser can read.");
    image.src = address;
  };
  canvas.addEventListener("dragover", (event) => event.preventDefault());
  canvas.addEventListener("drop", (event) => {
    event.preventDefault();
    show(event.dataTransfer.files[0]);
  });
  const scale = make("select");
  scale.append(new Option("values 0 to 1", "1"), new Option("values 0 to 255", "255"));
  if (!FLOATS.includes(info.dtype)) scale.value = "255";
  scale.addEventListener("change", () => predict());
  const wipe = make("button", "Clear");
  wipe.type = "button";
  wipe.addEventListener("click", () => {
    clear();
    at("answer").replaceChildren();
  });
  const file = make("input");
  file.type = "file";
  file.accept = "image/*";
  file.addEventListener("change", () => show(file.files[0]));
  box.append(canvas, wipe, scale, file, make("p", "Draw, or drop a picture: white on black.", "hint"));
  return () => {
    const small = document.createElement("canvas");
    small.width = picture.width;
    small.height = picture.height;
    const pen = small.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(canvas, 0, 0, picture.width, picture.height);
    const data = pen.getImageData(0, 0, picture.width, picture.height).data;
    const most = Number(scale.value);
    const whole = !FLOATS.includes(info.dtype);
    const number = (value) => (whole ? Math.round((value * most) / 255) : (value * most) / 255);
    const rows = [];
    for (let y = 0; y < picture.height; ++y) {
      const row = [];
      for (let x = 0; x < picture.width; ++x) {
        const i = 4 * (y * picture.width + x);
        const grey = number(0.299 * data[i] + 0.587 * data[i + 1] + 0.114 * data[i + 2]);
        row.push(picture.channels === 3 ? [0, 1, 2].map((c) => number(data[i + c])) : picture.channels === 1 ? [grey] : grey);
      }
      rows.push(row);
    }
    return picture.flat ? rows.flat() : rows;
  };
}

function zeros(shape, value) {
  if (shape.length === 0) return value;
  return Array.from({ length: Math.min(Math.max(shape[0], 1), 64) }, () => zeros(shape.slice(1), value));
}

function written(info, box) {
  const shape = shapeOf(info).slice(1);
  if (info.dtype === "DT_STRING" && shape.length === 0) {
    const line = make("input");
    line.type = "text";
    box.append(line);
    return () => line.value;
  }
  const area = make("textarea");
  area.rows = 4;
  area.value = JSON.stringify(zeros(shape, info.dtype === "DT_STRING" ? "" : info.dtype === "DT_BOOL" ? false : 0));
  box.append(area);
  return () => {
    try {
      return JSON.parse(area.value);
    } catch {
      throw new Error("What is written for an input is not JSON.");
    }
  };
}

function buildForm() {
  const signature = signatures[at("signature").value];
  readers = {};
  at("inputs").replaceChildren();
  at("answer").replaceChildren();
  if (!signature) return;
  for (const [name, info] of Object.entries(signature.inputs).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const box = make("fieldset");
    box.append(make("legend", name + ": " + info.dtype + " (" + shapeOf(info).join(", ") + ")"));
    const picture = pictureOf(info);
    readers[name] = picture ? drawing(info, picture, box) : written(info, box);
    at("inputs").append(box);
  }
}

// -- answers

function bars(values) {
  const box = make("div");
  const least = Math.min(0, ...values);
  const most = Math.max(1e-9, ...values);
  const best = values.indexOf(Math.max(...values));
  values.forEach((value, i) => {
    const row = make("div", undefined, i === best ? "row best" : "row");
    const meter = make("meter");
    meter.min = least;
    meter.max = most > 1 || least < 0 ? most : 1;
    meter.value = value;
    row.append(make("span", String(i)), meter, make("span", value.toPrecision(4)));
    box.append(row);
  });
  return box;
}

function showAnswer(row, by) {
  const signature = signatures[at("signature").value];
  const names = Object.keys(signature.outputs).sort();
  const answer = at("answer");
  answer.replaceChildren(make("p", "answered by version " + by, "hint"));
  const outputs = names.length === 1 ? { [names[0]]: row } : row;
  for (const name of names) {
    const value = outputs[name];
    answer.append(make("h2", name));
    const numbers = Array.isArray(value) && value.length > 1 && value.length <= 100 && value.every((each) => typeof each === "number");
    answer.append(numbers ? bars(value) : make("p", typeof value === "string" ? value : JSON.stringify(value), "value"));
  }
}

let asking = 0;
async function predict() {
  const mine = ++asking;
  try {
    const row = {};
    for (const [name, read] of Object.entries(readers)) row[name] = read();
    const body = JSON.stringify({ signature_name: at("signature").value, instances: [row] });
    let by = version;
    let answer;
    try {
      answer = await call(modelPath() + "/versions/" + by + ":predict", body);
    } catch (error) {
      if (error.status !== 404) throw error;
      await look(); // it has just gone: the next one answers
      by = version;
      answer = await call(modelPath() + ":predict", body);
    }
    if (mine !== asking) return;
    trouble("");
    showAnswer(answer.predictions[0], by);
  } catch (error) {
    if (mine === asking) trouble(error.message);
  }
}

// -- what is there

// The same whatever order its keys come in: a server may write them in any.
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

async function look() {
  const models = (await call("/v1/models")).models;
  const shown = Array.from(at("model").options, (option) => option.value);
  if (JSON.stringify(shown) !== JSON.stringify(models)) {
    const before = at("model").value;
    at("model").replaceChildren(...models.map((name) => new Option(name, name)));
    if (models.includes(before)) at("model").value = before;
    else version = null;
  }
  if (models.length === 0) throw new Error("This server has no models.");
  const states = (await call(modelPath())).model_version_status;
  const ready = states.filter((each) => each.state === "AVAILABLE").map((each) => each.version);
  if (ready.length === 0) {
    const why = states.find((each) => each.status.error_message);
    version = null;
    at("version").textContent = "";
    throw new Error("No version of this model is served" + (why ? ": " + why.status.error_message : " yet."));
  }
  if (ready[0] === version) return;
  const metadata = await call(modelPath() + "/versions/" + ready[0] + "/metadata");
  version = ready[0];
  at("version").textContent = "version " + version;
  const found = metadata.metadata.signature_def.signature_def;
  if (JSON.stringify(sorted(found)) === JSON.stringify(sorted(signatures))) return predict(); // the same question to the new one
  signatures = found;
  const names = Object.keys(found).sort((a, b) => (b === "serving_default") - (a === "serving_default") || (a < b ? -1 : 1));
  at("signature").replaceChildren(...names.map((name) => new Option(name, name)));
  buildForm();
}

let inTrouble = false;
async function keepLooking() {
  try {
    await look();
    if (inTrouble) trouble("");
    inTrouble = false;
  } catch (error) {
    inTrouble = true;
    trouble(error.message);
  }
  setTimeout(keepLooking, POLL_MS);
}

at("model").addEventListener("change", () => {
  version = null;
  signatures = {};
  look().catch((error) => trouble(error.message));
});
at("signature").addEventListener("change", buildForm);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  predict();
});
at("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value;
  look().catch((error) => trouble(error.message));
});
keepLooking();
