/** The project as the site reads it. Runs in Bun and in Node. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findSite, type Site } from './pages.ts'

export const siteFolder = dirname(dirname(fileURLToPath(import.meta.url)))
export const projectRoot = dirname(siteFolder)
/** The pages as VitePress takes them: written for each build, and not in git. */
export const stagedFolder = join(siteFolder, 'pages')

export const readProjectFile = (file: string): string => readFileSync(join(projectRoot, file), 'utf8')

/** Files that git knows or would add: what it ignores may be secret. */
function projectFiles(): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: projectRoot,
    encoding: 'utf8',
  })
  return [...new Set(listed.split('\0'))].filter((file) => file !== '' && existsSync(join(projectRoot, file))).sort()
}

export const readSite = (): Site => findSite(projectFiles(), readProjectFile)
