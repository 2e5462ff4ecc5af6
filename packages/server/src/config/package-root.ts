/** Whether this is the executable that `npm run build` makes, with everything in it. */
export const isExecutable = Bun.embeddedFiles.length > 0

/**
 * The directory of this package's files: next to its source, or inside the executable, whose modules are one file at the
 * root of what is in it.
 */
export const packageRoot = new URL(isExecutable ? './packages/server/' : '../../', import.meta.url)
