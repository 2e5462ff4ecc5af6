// node bundle.mjs ios FILE: what Metro makes of the app, without Xcode and without Gradle. Hermes compiles it, so nothing is minified.
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

const require = createRequire(import.meta.url)
const { loadConfig, runBuild } = require('metro')
const [platform = 'android', out = `dist/${platform}.js`] = process.argv.slice(2)

mkdirSync(dirname(out), { recursive: true })
const config = await loadConfig({ cwd: import.meta.dirname, config: require.resolve('./metro.config.js') })
await runBuild(config, { entry: 'index.js', platform, out, dev: false, minify: false })
