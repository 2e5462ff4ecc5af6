import { fileURLToPath } from 'node:url'
import type { BunPlugin } from 'bun'

const pageDirectory = new URL('../page/', import.meta.url)
const styles = ['base.css', 'sign-in.css', 'frame.css', 'log.css', 'layout.css']

/** The files of the page with their types; '' is the page itself. */
export const pageFiles = {
  '': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'main.js': 'text/javascript; charset=utf-8',
} as const
export type PageFile = keyof typeof pageFiles

/** The path of a page file in the executable: made already, for it has no sources (`npm run build`). */
export const builtFile = (name: PageFile) => `dist/page/${name}.page`

/** The page is written for React and runs on Preact, which is a tenth of its size. */
const onPreact: BunPlugin = {
  name: 'on-preact',
  setup(build) {
    const standIns: Record<string, string> = {
      react: 'preact/compat',
      'react-dom': 'preact/compat',
      'react-dom/client': 'preact/compat/client',
      'react/jsx-runtime': 'preact/compat/jsx-runtime',
    }
    build.onResolve({ filter: /^react(-dom)?(\/|$)/ }, ({ path }) => ({
      path: fileURLToPath(import.meta.resolve(standIns[path] ?? path)),
    }))
  },
}

async function bundleScript(name: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [fileURLToPath(new URL(name, pageDirectory))],
    target: 'browser',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [onPreact],
  })
  if (!outputs[0]) throw new Error(`${name} gives no script.`)
  return outputs[0].text()
}

async function joinStyles(): Promise<string> {
  const own = styles.map((name) => new URL(name, pageDirectory))
  const files = [new URL(import.meta.resolve('@ringwire/ui/ui.css')), ...own]
  const texts = await Promise.all(files.map((file) => Bun.file(file).text()))
  return texts.join('\n')
}

const makers: Readonly<Record<PageFile, () => Promise<string>>> = {
  '': () => textOf('index.html'),
  'page.css': joinStyles,
  'icon.svg': () => textOf('icon.svg'),
  'main.js': () => bundleScript('main.tsx'),
}

function textOf(name: string): Promise<string> {
  return Bun.file(new URL(name, pageDirectory)).text()
}

/** From the sources. */
export function makePageFile(name: PageFile): Promise<string> {
  return makers[name]()
}

export function readPageFile(name: PageFile): Promise<string> {
  if (Bun.embeddedFiles.length === 0) return makePageFile(name)
  return Bun.file(new URL(`./${builtFile(name)}`, import.meta.url)).text()
}
