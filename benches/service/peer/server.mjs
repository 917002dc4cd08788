// POST /convert?quality=85&width=800 with a picture as the body gives a WebP, resized if a width, or
// a width and a height of a box, is given and never larger, by sharp and Fastify: the peer
// of `cargo bench --bench service`, which starts it and says how many threads it has by the
// environment: SHARP_CONCURRENCY (libvips' threads for one picture) and UV_THREADPOOL_SIZE
// (pictures at a time).
import Fastify from "fastify";
import sharp from "sharp";

if (process.env.SHARP_CONCURRENCY) sharp.concurrency(Number(process.env.SHARP_CONCURRENCY));

const app = Fastify({ bodyLimit: 64 * 1024 * 1024 });

app.addContentTypeParser(/^image\//, { parseAs: "buffer" }, (_request, body, done) => done(null, body));

app.post("/convert", {
  schema: {
    querystring: {
      type: "object",
      properties: {
        quality: { type: "integer", minimum: 1, maximum: 100, default: 75 },
        width: { type: "integer", minimum: 1, maximum: 16383 },
        height: { type: "integer", minimum: 1, maximum: 16383 },
      },
    },
  },
}, async (request, reply) => {
  const animated = request.headers["content-type"] === "image/gif";
  const picture = sharp(request.body, { animated });
  if (!animated) picture.autoOrient();
  const { width, height } = request.query;
  if (width) picture.resize({ width, height, fit: "inside", withoutEnlargement: true });
  const webp = await picture
    .webp({ quality: request.query.quality })
    .toBuffer();
  return reply.type("image/webp").send(webp);
});

console.log(`listening on ${await app.listen({ host: "127.0.0.1", port: 0 })}`);
