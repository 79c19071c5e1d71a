# Self-hosted Jobwire (docs/self-hosting.md). The image contains Node and the package, which has no dependencies.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# Without install scripts: the image already contains Node.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node build.ts dist && chmod 755 dist/cli/jobwire.js

FROM node:24.21.0-bookworm-slim
COPY --from=build /src/dist /opt/jobwire
RUN ln -s /opt/jobwire/cli/jobwire.js /usr/local/bin/jobwire && mkdir -m 700 /data && chown 1000:1000 /data
USER 1000:1000
# The configuration is mounted here, as jobwire.json, with dataDir /data and host 0.0.0.0.
WORKDIR /etc/jobwire
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["jobwire", "health"]
ENTRYPOINT ["jobwire"]
CMD ["start", "--config", "jobwire.json"]
