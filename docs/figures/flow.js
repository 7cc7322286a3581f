// Particles on three crescents, moved in the browser: the figure of the theory page.
(() => {
  "use strict";

  const CENTRES = [-2, 0, 2];
  const COUNT = 150;
  const VIEW = { x: [-3.4, 3.4], y: [-3.4, 4.6] };

  // log π and its gradient, π ∝ Σ exp(−x⁴/10 − (4(y − z) − x²)²/2).
  function score(x, y) {
    const terms = CENTRES.map((z) => 4 * (y - z) - x * x);
    const logs = terms.map((t) => -0.5 * t * t);
    const top = Math.max(...logs);
    const weights = logs.map((l) => Math.exp(l - top));
    const sum = weights.reduce((a, b) => a + b, 0);
    let gx = -0.4 * x ** 3;
    let gy = 0;
    weights.forEach((w, i) => {
      gx += (w / sum) * 2 * x * terms[i];
      gy -= (w / sum) * 4 * terms[i];
    });
    return [gx, gy, top + Math.log(sum) - 0.1 * x ** 4];
  }

  function normal() {
    return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  }

  function start(at, spread) {
    return Array.from({ length: COUNT }, () => ({
      x: at[0] + spread * normal(),
      y: at[1] + spread * normal(),
      p: normal(),
      q: normal(),
    }));
  }

  // Stein's sum for the right-hand sides in `drift`, of kernel width h over θ.
  function stein(particles, drift, h) {
    return particles.map((a) => {
      let [vx, vy, rx, ry] = [0, 0, 0, 0];
      particles.forEach((b, j) => {
        const [dx, dy] = [a.x - b.x, a.y - b.y];
        const k = Math.exp(-(dx * dx + dy * dy) / h);
        vx += k * drift[j][0];
        vy += k * drift[j][1];
        rx += ((k * 2) / h) * dx;
        ry += ((k * 2) / h) * dy;
      });
      return [vx / COUNT, vy / COUNT, rx / COUNT, ry / COUNT];
    });
  }

  const METHODS = {
    ld(particles) {
      const step = 0.01;
      for (const a of particles) {
        const [gx, gy] = score(a.x, a.y);
        a.x += step * gx + Math.sqrt(2 * step) * normal();
        a.y += step * gy + Math.sqrt(2 * step) * normal();
      }
    },
    svgd(particles) {
      const drift = particles.map((a) => score(a.x, a.y));
      const v = stein(particles, drift, 0.1);
      particles.forEach((a, i) => {
        a.x += 0.25 * (v[i][0] + v[i][2]);
        a.y += 0.25 * (v[i][1] + v[i][3]);
      });
    },
    // Blocks θ and r with A = 1 on r, the kernel on θ: half a step of r, one of θ, half a step of r.
    "sghmc-stein"(particles) {
      const step = 0.3;
      const push = (length) => {
        const drift = particles.map((a) => {
          const [gx, gy] = score(a.x, a.y);
          return [gx - a.p, gy - a.q];
        });
        const v = stein(particles, drift, 0.1);
        particles.forEach((a, i) => {
          a.p += length * (v[i][0] + v[i][2]);
          a.q += length * (v[i][1] + v[i][3]);
        });
      };
      push(step / 2);
      const v = stein(particles, particles.map((a) => [a.p, a.q]), 0.1);
      particles.forEach((a, i) => {
        a.x += step * v[i][0];
        a.y += step * v[i][1];
      });
      push(step / 2);
    },
  };

  function build(place) {
    const [width, height] = [Number(place.dataset.width), Number(place.dataset.height)];
    const controls = document.createElement("div");
    const canvas = document.createElement("canvas");
    const scale = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    canvas.style.cssText = `width:100%;max-width:${width}px;aspect-ratio:${width}/${height};touch-action:manipulation`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "particles moving over three crescents");
    place.replaceChildren(controls, canvas);

    const toPixel = (x, y) => [
      ((x - VIEW.x[0]) / (VIEW.x[1] - VIEW.x[0])) * canvas.width,
      (1 - (y - VIEW.y[0]) / (VIEW.y[1] - VIEW.y[0])) * canvas.height,
    ];
    const pen = canvas.getContext("2d");
    const backdrop = document.createElement("canvas");
    [backdrop.width, backdrop.height] = [160, 120];
    const shade = backdrop.getContext("2d");
    const image = shade.createImageData(160, 120);
    for (let j = 0; j < 120; j += 1) {
      for (let i = 0; i < 160; i += 1) {
        const x = VIEW.x[0] + ((i + 0.5) / 160) * (VIEW.x[1] - VIEW.x[0]);
        const y = VIEW.y[1] - ((j + 0.5) / 120) * (VIEW.y[1] - VIEW.y[0]);
        image.data.set([49, 130, 189, 190 * Math.exp(0.6 * score(x, y)[2])], 4 * (j * 160 + i));
      }
    }
    shade.putImageData(image, 0, 0);

    let [method, at, particles, steps, isRunning] = ["svgd", [0, 0], [], 0, true];
    const count = document.createElement("span");
    const restart = () => ([particles, steps] = [start(at, 1.2), 0]);
    const button = (name, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = name;
      made.style.cssText = "margin:0 .4em .4em 0;padding:.2em .7em;border:1px solid #888;border-radius:4px;cursor:pointer";
      made.addEventListener("click", act);
      controls.append(made);
      return made;
    };
    const choices = Object.keys(METHODS).map((name) =>
      button(name, () => {
        method = name;
        mark();
        restart();
      }),
    );
    const mark = () =>
      choices.forEach((choice) => {
        choice.style.fontWeight = choice.textContent === method ? "bold" : "normal";
        choice.setAttribute("aria-pressed", String(choice.textContent === method));
      });
    button("again", restart);
    const pause = button("pause", () => {
      isRunning = !isRunning;
      pause.textContent = isRunning ? "pause" : "go on";
    });
    controls.append(count);
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      at = [
        VIEW.x[0] + ((event.clientX - box.left) / box.width) * (VIEW.x[1] - VIEW.x[0]),
        VIEW.y[1] - ((event.clientY - box.top) / box.height) * (VIEW.y[1] - VIEW.y[0]),
      ];
      restart();
    });

    function frame() {
      if (isRunning) {
        METHODS[method](particles);
        steps += 1;
      }
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.imageSmoothingEnabled = true;
      pen.drawImage(backdrop, 0, 0, canvas.width, canvas.height);
      pen.fillStyle = "#d95f0e";
      for (const a of particles) {
        pen.beginPath();
        pen.arc(...toPixel(a.x, a.y), 2.6 * scale, 0, 2 * Math.PI);
        pen.fill();
      }
      count.textContent = ` step ${steps}`;
      window.requestAnimationFrame(frame);
    }
    mark();
    restart();
    frame();
  }

  const begin = () => document.querySelectorAll(".steinflow-flow").forEach(build);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
