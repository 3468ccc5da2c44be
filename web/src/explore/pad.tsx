// A drawing pad, for models that read pictures.
import { useEffect, useRef } from "preact/hooks";
import { freeCanvas } from "../canvas";
import { isSite } from "../site/place";
import { trace } from "../trace";

const padSize = 28;

/** A canvas as the input of a model: PNG, which is short in a link; in a tab, which has no decoder for it, its pixels. */
function inputOf(canvas: HTMLCanvasElement): string {
  if (!isSite) return canvas.toDataURL("image/png");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d")!.getImageData(0, 0, width, height);
  let text = `P6\n${width} ${height}\n255\n`;
  for (let i = 0; i < data.length; i++) if (i % 4 < 3) text += String.fromCharCode(data[i]);
  return `data:image/x-portable-anymap;base64,${btoa(text)}`;
}

/** A file as an input of the size the model's own pictures have. */
async function fileAsInput(file: File): Promise<string> {
  const image = await createImageBitmap(file);
  const { width, height } = trace.value?.picture ?? { width: padSize, height: padSize };
  const { canvas, c } = freeCanvas(width, height);
  c.drawImage(image, 0, 0, width, height);
  return inputOf(canvas);
}

/** Draw a picture, or choose a file. */
export function Pad({ onPicture }: { onPicture: (dataUrl: string) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawing = useRef(false);
  const clear = () => {
    const c = canvas.current!.getContext("2d")!;
    c.fillStyle = "#000";
    c.fillRect(0, 0, padSize, padSize);
  };
  useEffect(clear, []);
  const dab = (e: PointerEvent) => {
    if (!drawing.current) return;
    const r = canvas.current!.getBoundingClientRect();
    const c = canvas.current!.getContext("2d")!;
    const x = ((e.clientX - r.left) / r.width) * padSize;
    const y = ((e.clientY - r.top) / r.height) * padSize;
    c.fillStyle = "#fff";
    c.beginPath();
    c.arc(x, y, 1.4, 0, 2 * Math.PI);
    c.fill();
  };
  const begin = (e: PointerEvent) => {
    drawing.current = true;
    canvas.current!.setPointerCapture(e.pointerId);
    dab(e);
  };
  const end = () => {
    drawing.current = false;
  };
  const choose = async (file: File | undefined) => file && onPicture(await fileAsInput(file));
  return (
    <div class="pad">
      <span class="caption">Draw a picture of your own:</span>
      <canvas
        ref={canvas}
        width={padSize}
        height={padSize}
        aria-label="Drawing pad"
        onPointerDown={begin}
        onPointerMove={dab}
        onPointerUp={end}
      />
      <span>
        <button type="button" onClick={() => onPicture(inputOf(canvas.current!))}>
          Run the drawing
        </button>
        <button type="button" onClick={clear}>
          Clear
        </button>
        <label class="file">
          or a file <input type="file" accept="image/*" onChange={(e) => void choose(e.currentTarget.files?.[0])} />
        </label>
      </span>
    </div>
  );
}
