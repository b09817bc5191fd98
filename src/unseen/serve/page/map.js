"use strict";
// A map of points that can be moved, zoomed and walked over with the keyboard.

class PointMap {
  constructor(canvas, say, choose) {
    this.canvas = canvas;
    this.say = say;
    this.choose = choose;
    this.points = [];
    this.at = -1;
    this.all();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", () => { this.held = null; });
  }

  show(points) {
    this.points = points;
    this.most = Math.max(1, ...points.map((p) => p.n ?? 0));
    this.at = -1;
    this.all();
    this.draw();
  }

  all() { // everything in view
    this.scale = 1;
    this.left = this.top = 0;
  }

  // From the plane to the canvas, in CSS pixels.
  frame() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.box || this.boxOf !== this.points) {
      const box = { x0: Infinity, x1: -Infinity, y0: Infinity, y1: -Infinity };
      for (const p of this.points) {
        box.x0 = Math.min(box.x0, p.x); box.x1 = Math.max(box.x1, p.x);
        box.y0 = Math.min(box.y0, p.y); box.y1 = Math.max(box.y1, p.y);
      }
      this.box = box;
      this.boxOf = this.points;
    }
    const { x0, x1, y0, y1 } = this.box;
    const margin = 24;
    const fit = Math.min((width - 2 * margin) / (x1 - x0 || 1), (height - 2 * margin) / (y1 - y0 || 1));
    const unit = fit * this.scale;
    return {
      width, height,
      x: (p) => width / 2 + (p.x - (x0 + x1) / 2) * unit + this.left,
      y: (p) => height / 2 - (p.y - (y0 + y1) / 2) * unit + this.top,
    };
  }

  draw() {
    const { canvas, points } = this;
    const ratio = devicePixelRatio || 1;
    const frame = this.frame();
    canvas.width = Math.round(frame.width * ratio);
    canvas.height = Math.round(frame.height * ratio);
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    pen.scale(ratio, ratio);
    pen.fillStyle = style.getPropertyValue("--dot");
    pen.globalAlpha = points.length > 500 ? 0.5 : 0.8;
    const usual = Math.max(1.5, Math.min(5, 70 / Math.sqrt(points.length || 1))) * Math.min(2.2, Math.sqrt(this.scale));
    const size = (p) => usual * (0.6 + 1.4 * Math.sqrt((p.n ?? 0.2 * this.most) / this.most));
    const visible = [];
    for (const p of points) {
      const x = frame.x(p), y = frame.y(p);
      if (x < -9 || y < -9 || x > frame.width + 9 || y > frame.height + 9) continue;
      pen.beginPath();
      pen.arc(x, y, size(p), 0, 7);
      pen.fill();
      visible.push([x, y, p]);
    }
    pen.globalAlpha = 1;
    pen.font = "12px system-ui, sans-serif";
    const taken = [], ink = style.getPropertyValue("--ink"), back = style.getPropertyValue("--card");
    const write = (x, y, p) => { // unless it would cover another label
      const text = label(p).length > 30 ? `${label(p).slice(0, 29)}…` : label(p), wide = pen.measureText(text).width;
      const far = size(p) + 3, left = x + far + wide > frame.width ? x - far - wide : x + far;
      const box = [left - 2, y - 8, left + wide + 2, y + 8];
      if (taken.some((o) => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3])) return;
      taken.push(box);
      pen.lineWidth = 3;
      pen.strokeStyle = back;
      pen.fillStyle = ink;
      pen.strokeText(text, left, y + 4);
      pen.fillText(text, left, y + 4);
    };
    const p = points[this.at];
    if (p) {
      const x = frame.x(p), y = frame.y(p);
      pen.strokeStyle = style.getPropertyValue("--down");
      pen.lineWidth = 3;
      pen.beginPath();
      pen.arc(x, y, size(p) + 4, 0, 7);
      pen.stroke();
      pen.font = "bold 13px system-ui, sans-serif";
      write(x, y, p);
      pen.font = "12px system-ui, sans-serif";
    }
    const room = Math.round(frame.width * frame.height / 14000);
    visible.sort((one, other) => (other[2].n ?? 0) - (one[2].n ?? 0));
    for (const [x, y, one] of visible) {
      if (taken.length >= room) break;
      if (one !== p) write(x, y, one);
    }
  }

  goTo(id) { // a point in the middle, and larger
    const place = this.points.findIndex((p) => p.id === id);
    if (place < 0) return false;
    this.scale = Math.max(this.scale, 4);
    this.left = this.top = 0;
    const frame = this.frame();
    this.left = frame.width / 2 - frame.x(this.points[place]);
    this.top = frame.height / 2 - frame.y(this.points[place]);
    this.mark(place);
    this.draw();
    return true;
  }

  zoom(factor, x, y) {
    const frame = this.frame();
    x = x ?? frame.width / 2;
    y = y ?? frame.height / 2;
    const scale = Math.min(200, Math.max(1, this.scale * factor));
    factor = scale / this.scale;
    this.left = (this.left + frame.width / 2 - x) * factor + x - frame.width / 2;
    this.top = (this.top + frame.height / 2 - y) * factor + y - frame.height / 2;
    this.scale = scale;
    this.draw();
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }

  press(event) {
    this.held = { x: event.clientX, y: event.clientY, far: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.held) {
      this.mark(this.nearest(event.offsetX, event.offsetY, 14), false);
      this.canvas.classList.toggle("over", this.at >= 0);
      return;
    }
    const dx = event.clientX - this.held.x, dy = event.clientY - this.held.y;
    if (Math.abs(dx) + Math.abs(dy) > 3) this.held.far = true;
    this.left += dx;
    this.top += dy;
    Object.assign(this.held, { x: event.clientX, y: event.clientY });
    this.draw();
  }

  release(event) {
    const was = this.held;
    this.held = null;
    const found = this.nearest(event.offsetX, event.offsetY, 18);
    if (was && !was.far && found >= 0) {
      this.mark(found);
      this.choose(this.points[found]);
    }
  }

  nearest(x, y, most) {
    const frame = this.frame();
    let best = -1, least = most * most;
    this.points.forEach((p, place) => {
      const far = (frame.x(p) - x) ** 2 + (frame.y(p) - y) ** 2;
      if (far < least) { least = far; best = place; }
    });
    return best;
  }

  mark(place, speak = true) {
    if (place === this.at) return;
    this.at = place;
    this.draw();
    const p = this.points[place];
    if (p || speak) this.say(p ? label(p) : "");
  }

  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step) this.walk(...step);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") { this.all(); this.draw(); }
    else if (event.key === "Enter" && this.points[this.at]) this.choose(this.points[this.at]);
    else return;
    event.preventDefault();
  }

  walk(dx, dy) { // to the nearest point in this direction
    const frame = this.frame(), own = this.points[this.at];
    const x = own ? frame.x(own) : frame.width / 2, y = own ? frame.y(own) : frame.height / 2;
    let best = own ? this.at : this.nearest(x, y, 1e9), least = Infinity;
    if (own) this.points.forEach((p, place) => {
      const ahead = (frame.x(p) - x) * dx + (frame.y(p) - y) * dy;
      const aside = Math.abs((frame.x(p) - x) * dy) + Math.abs((frame.y(p) - y) * dx);
      const far = ahead + 2 * aside;
      if (place !== this.at && ahead > 0.5 && aside <= 2 * ahead && far < least) { least = far; best = place; }
    });
    this.mark(best);
  }
}
