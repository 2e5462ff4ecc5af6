import { renderMermaidSVG } from 'beautiful-mermaid'
import { defineConfig } from 'vitepress'
import { references } from '../src/contents.ts'
import { anchorOf, extend, type Markdown, withoutStyle } from '../src/markdown.ts'
import { readProjectFile, readSite } from '../src/project.ts'
import { sidebarOf } from '../src/sidebar.ts'

const site = readSite()
const draw = (mermaid: string) =>
  withoutStyle(
    renderMermaidSVG(mermaid, { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', transparent: true, font: 'Inter' }),
  )

export default defineConfig({
  title: 'Ringwire',
  description: 'Realtime call signaling for one-to-one audio and video calls.',
  lang: 'en',
  srcDir: 'pages',
  cacheDir: '.vitepress/cache',
  // VitePress puts the base before every link, except before those in the head.
  transformHead: ({ siteData }) => [['link', { rel: 'icon', href: `${siteData.base}icon.svg` }]],
  markdown: {
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    attrs: { disable: true },
    config: (md) => extend(md as unknown as Markdown, { site, draw }),
  },
  // The long pages and the index of the search are loaded when they are opened.
  vite: { build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Five minutes', link: '/index.md#two-commands' },
      { text: 'Guides', link: '/guide/app-developers.md' },
      { text: 'Rule book', link: '/protocol.md' },
      { text: 'REST', link: '/reference/rest/index.md' },
      { text: 'WebSocket', link: '/reference/websocket/index.md' },
    ],
    sidebar: [...sidebarOf([...site.pages, ...references(readProjectFile)])] as never,
    outline: [2, 3],
    search: {
      provider: 'local',
      // The index needs no colours, and none of the files that documents link to.
      options: {
        _render(text, env, md) {
          if (env.relativePath.startsWith('files/')) return ''
          const { highlight } = md.options
          md.options.highlight = null
          const html = md.render(text, env)
          md.options.highlight = highlight
          return html
        },
      },
    },
    externalLinkIcon: true,
  },
})
