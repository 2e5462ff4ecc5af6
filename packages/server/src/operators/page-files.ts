import { fileURLToPath } from 'node:url'
import { isExecutable, packageRoot } from '../config/package-root.ts'

/** The files of the operator's page with their types; '' is the page itself. */
export const pageFiles = {
  '': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'main.js': 'text/javascript; charset=utf-8',
} as const
export type PageFile = keyof typeof pageFiles

/** The path of a page file in the executable: made already, for it has no sources (`npm run build`). */
export const builtFile = (name: PageFile) => `dist/operators/${name}.page`

const sourceOf = (name: string) => new URL(`page/${name}`, packageRoot)
const textOf = (name: string) => Bun.file(sourceOf(name)).text()

async function bundleScript(): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [fileURLToPath(sourceOf('main.tsx'))],
    target: 'browser',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  if (!outputs[0]) throw new Error('main.tsx gives no script.')
  return outputs[0].text()
}

const makers: Readonly<Record<PageFile, () => Promise<string>>> = {
  '': () => textOf('index.html'),
  'page.css': () => textOf('page.css'),
  'icon.svg': () => textOf('icon.svg'),
  'main.js': bundleScript,
}

/** From the sources. */
export function makePageFile(name: PageFile): Promise<string> {
  return makers[name]()
}

export function readPageFile(name: PageFile): Promise<string> {
  if (!isExecutable) return makePageFile(name)
  return Bun.file(new URL(`../../${builtFile(name)}`, packageRoot)).text()
}
